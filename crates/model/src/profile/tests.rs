//! Matching and merging of profile entries.

use super::*;

fn builtin() -> Profiles {
    Profiles::builtin().unwrap()
}

#[test]
fn stars_stand_for_anything() {
    for (pattern, text, fits) in [
        ("gpt-5", "gpt-5", true),
        ("gpt-5", "gpt-5-mini", false),
        ("gpt-5*", "gpt-5-mini", true),
        ("*coder*", "qwen2.5-coder:1.5b", true),
        ("*coder*1.5b*", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", true),
        ("*coder*1.5b", "qwen2.5-coder-1.5b-instruct", false),
        ("a*b*b", "ab", false),
        ("*", "", true),
        ("", "x", false),
    ] {
        assert_eq!(looks_like(pattern, text), fits, "{pattern} {text}");
    }
}

#[test]
fn a_local_server_has_native_tools_with_text_forms_recognised() {
    for provider in ["ollama", "llama.cpp", "lmstudio", "vllm"] {
        let traits = builtin().resolve(Some(provider), "anything").traits();
        assert_eq!((traits.tool_format, traits.text_calls), (ToolFormat::Native, true), "{provider}");
    }
    let inside = builtin().resolve(Some("local"), "anything").traits();
    assert_eq!((inside.tool_format, inside.constraint), (ToolFormat::Schema, Constraint::LlamaCpp));
    assert_eq!(builtin().resolve(Some("groq"), "anything").traits(), ModelTraits::default());
    assert_eq!(builtin().resolve(None, "anything").traits(), ModelTraits::default());
}

#[test]
fn every_entry_that_fits_counts_the_later_over_the_earlier() {
    let profile = builtin().resolve(Some("llama.cpp"), "/models/Qwen2.5-Coder-1.5B-Instruct-q4_k_m.gguf");
    assert_eq!(
        profile.traits(),
        ModelTraits {
            text_calls: true,
            one_call: true,
            constraint: Constraint::LlamaCpp,
            edit_format: EditFormat::Whole,
            small: true,
            ..ModelTraits::default()
        }
    );
    assert_eq!(builtin().resolve(Some("anthropic"), "claude-3-haiku-20240307").max_output_tokens, Some(4096));
    assert_eq!(builtin().resolve(Some("anthropic"), "claude-sonnet-4-5").max_output_tokens, Some(16384));
}

#[test]
fn a_users_file_goes_before_ours() {
    let mut profiles = builtin();
    profiles
        .add("mine", "[[profile]]\nmodel = [\"smollm2\"]\ntool_format = \"schema\"\none_call = false\n")
        .unwrap();
    let traits = profiles.resolve(None, "SmolLM2").traits();
    assert_eq!((traits.tool_format, traits.one_call, traits.text_calls), (ToolFormat::Schema, false, true));
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_its_place() {
    let fault = |text: &str| Profiles::default().add("mine.toml", text).unwrap_err().to_string();
    insta::assert_snapshot!(fault("x = 1\n"), @"mine.toml:1:1: unknown field `x`, expected `profile` or `price`");
    insta::assert_snapshot!(fault("[[price]]\ninput = 1\n"), @"mine.toml:1:1: unexpected table [[price]]; entries are [[profile]] tables");
    insta::assert_snapshot!(fault("\n[[profile]]\nmodel = [\"a\"]\ntool_fromat = \"text\"\n"), @"mine.toml:2:1: unknown key `tool_fromat` in a profile; expected tool_format");
    insta::assert_snapshot!(fault("[[profile]]\ntool_format = \"magic\"\n"), @"mine.toml:1:1: unknown variant `magic`, expected one of `native`, `text`, `schema`; in `tool_format`");
    insta::assert_snapshot!(fault("[[profile]]\nmodel = \"a\"\n"), @r#"mine.toml:1:1: invalid type: string "a", expected a sequence; in `model`"#);
}

#[test]
fn the_part_for_a_provider_says_of_its_models_what_the_whole_says() {
    let whole = builtin();
    let providers: std::collections::BTreeSet<&str> =
        whole.entries.iter().flat_map(|(names, _)| names.provider.iter().map(String::as_str)).collect();
    let models: Vec<String> = whole
        .entries
        .iter()
        .flat_map(|(names, _)| &names.model)
        .map(|model| model.replace('*', "x"))
        .collect();
    assert!(providers.len() > 2 && models.len() > 2);
    for provider in providers.into_iter().map(Some).chain([Some("unheard-of"), None]) {
        let part = Profiles::builtin_for(provider).unwrap();
        for model in models.iter().map(String::as_str).chain(["anything"]) {
            assert_eq!(part.resolve(provider, model), whole.resolve(provider, model), "{provider:?} {model}");
        }
    }
}

#[test]
fn tools_of_the_provider_are_off_unless_a_profile_says_otherwise() {
    let mut profiles = builtin();
    assert_eq!(
        profiles.resolve(Some("anthropic"), "claude-sonnet-4-5").traits().provider_tools,
        ProviderTools::Off
    );
    let mine = "[[profile]]\nprovider = [\"anthropic\"]\nprovider_tools = \"20250728\"\n";
    profiles.add("mine", mine).unwrap();
    let traits = profiles.resolve(Some("anthropic"), "claude-sonnet-4-5").traits();
    assert_eq!(traits.provider_tools, ProviderTools::Of20250728);
    let kept = serde_json::to_value(traits).unwrap();
    assert_eq!(kept["provider_tools"], "20250728");
    assert_eq!(serde_json::from_value::<ModelTraits>(kept).unwrap(), traits);
    assert_eq!(serde_json::to_value(ModelTraits::default()).unwrap().get("provider_tools"), None);
}

#[test]
fn each_model_is_offered_the_computer_tool_of_its_time() {
    let version = |model: &str| builtin().resolve(Some("anthropic"), model).traits().computer_tool;
    for model in ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-1", "claude-sonnet-4-20250514"] {
        assert_eq!(version(model), ComputerTool::Of20250124, "{model}");
    }
    for model in
        ["claude-opus-4-5", "claude-opus-4-6", "claude-opus-4-7", "claude-sonnet-4-6", "claude-sonnet-5"]
    {
        assert_eq!(version(model), ComputerTool::Of20251124, "{model}");
    }
    assert_eq!(version("claude-3-opus"), ComputerTool::Off);
}

#[test]
fn models_that_reason_are_asked_in_the_way_their_servers_take() {
    let of = |provider: &str, model: &str| builtin().resolve(Some(provider), model);
    for model in
        ["claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-4-8", "claude-fable-5"]
    {
        let profile = of("anthropic", model);
        let traits = profile.traits();
        assert_eq!(traits.thinking, ThinkingStyle::Adaptive, "{model}");
        assert!(traits.fixed_sampling && traits.images, "{model}");
        assert_eq!(profile.context_tokens, Some(1_000_000), "{model}");
    }
    for (model, fixed, context) in [
        ("gpt-6-sol", true, Some(922_000)),
        ("gpt-5.4-mini-2026-03-17", true, Some(272_000)),
        ("gpt-5.3-chat-latest", false, Some(128_000)),
        ("o3-mini", true, Some(200_000)),
        ("gpt-4.1", false, Some(1_047_576)),
        ("gpt-5.5", true, Some(922_000)),
        ("gpt-unheard-of", false, None),
    ] {
        let profile = of("openai", model);
        assert_eq!((profile.traits().fixed_sampling, profile.context_tokens), (fixed, context), "{model}");
    }
    // Older models keep their traits.
    let haiku = of("anthropic", "claude-haiku-4-5");
    assert_eq!((haiku.traits().thinking, haiku.traits().fixed_sampling), (ThinkingStyle::Budget, false));
}

#[test]
fn the_size_of_a_model_is_read_from_its_name() {
    let rows = [
        ("qwen2.5-coder-1.5b", Some(1.5)),
        ("qwen2.5-coder:7b-instruct-q4_K_M", Some(7.0)),
        ("SmolLM2-135M-Instruct", Some(0.135)),
        ("Qwen3-30B-A3B", Some(30.0)),
        ("mixtral-8x7b", Some(56.0)),
        ("gemma3n:e2b", Some(2.0)),
        ("gpt-oss-120b", Some(120.0)),
        ("gpt-5-mini", None),
        ("claude-opus-4.7", None),
        ("test", None),
        ("b", None),
    ];
    for (name, size) in rows {
        assert_eq!(parameters(name), size, "{name}");
    }
    let small = |name| Profiles::builtin().unwrap().resolve(Some("llama.cpp"), name).traits().small;
    assert!(small("qwen2.5-coder-1.5b") && small("llama3.1:8b") && !small("qwen3:32b") && !small("unknown"));
}
