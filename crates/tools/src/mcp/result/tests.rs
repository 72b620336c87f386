//! Results with every content type.

use serde_json::json;

use super::*;

#[test]
fn texts_are_joined_and_the_rest_is_named() {
    let result = json!({"content": [
        {"type": "text", "text": "one"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///b"},
    ]});
    let output = answer(&result, &CallLimits::default());
    assert!(output.ok);
    assert_eq!(
        output.content,
        "one\n[an image, image/png, about 3 bytes, not shown]\nfile:///a\ninside\n[see file:///b]"
    );
    let failed = answer(&json!({"content": [], "isError": true}), &CallLimits::default());
    assert_eq!((failed.ok, failed.content.as_str()), (false, "(no content)"));
    let structured = answer(&json!({"structuredContent": {"a": 1}}), &CallLimits::default());
    assert_eq!(structured.content, "{\"a\":1}");
}

#[test]
fn a_picture_is_shown_to_a_model_that_takes_them() {
    let png = crate::tool::image::tests::PNG;
    let limits = |image_bytes| CallLimits { image_bytes, ..CallLimits::default() };
    let ImageDisplay::Yes(image) = ImageInfo::parse(png).unwrap().encode(png, png.len()) else {
        panic!("not shown")
    };
    let part = json!({"type": "image", "mimeType": "image/png", "data": image.data});
    let broken = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
    let result = json!({"content": [broken, part, part]});
    let (shown, not) = ("about 69 bytes, shown with this answer", "about 69 bytes, not shown");
    let output = answer(&result, &limits(png.len() + 10));
    assert_eq!(
        output.content,
        format!(
            "[an image, image/png, about 3 bytes, not shown]\n[an image, image/png, {shown}]\n[an image, image/png, {not}]"
        )
    );
    assert_eq!(*output.images, [image]);
    assert!(answer(&result, &limits(0)).images.is_empty());
}

#[test]
fn a_long_answer_is_cut_and_that_is_said() {
    let limits = CallLimits { answer_bytes: 10, ..CallLimits::default() };
    let output = answer(&json!({"content": [{"type": "text", "text": "ä".repeat(20)}]}), &limits);
    assert_eq!((output.content.as_str(), output.truncated), ("äääää\n[… 30 bytes cut …]", true));
}
