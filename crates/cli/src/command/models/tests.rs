//! The table of models.

use super::*;

fn row(name: &str, source: &str) -> ModelRow {
    ModelRow {
        name: name.to_owned(),
        size_bytes: None,
        context_tokens: None,
        price: None,
        source: source.to_owned(),
    }
}

#[test]
fn what_is_known_stands_in_columns() {
    let free = Price { input: 0.0, output: 0.0, ..Price::default() };
    let paid = Price { input: 1.25, output: 10.0, ..Price::default() };
    let rows = [
        ModelRow {
            size_bytes: Some(986_000_000),
            context_tokens: Some(32_768),
            price: Some(free),
            ..row("ollama:q", "ollama")
        },
        ModelRow { size_bytes: Some(4_700_000_000), ..row("ollama:long-name", "ollama") },
        ModelRow { price: Some(paid), ..row("openai:gpt", "openai") },
    ];
    insta::assert_snapshot!(table(&rows, true), @"
    ollama:q            986 MB   32768 tok  free
    ollama:long-name    4.7 GB
    openai:gpt                              $1.25 in, $10 out per million
    ");
}

#[test]
fn a_long_list_is_shortened_unless_a_name_is_asked_for() {
    let rows: Vec<ModelRow> = (0..45).map(|n| row(&format!("openai:m{n}"), "openai")).collect();
    let short = table(&rows, true);
    assert_eq!(short.lines().count(), 41);
    assert!(short.ends_with("… and 5 more of openai: fusee models NAME\n"));
    assert_eq!(table(&rows, false).lines().count(), 45);
}
