//! Selects the next token with the samplers of llama.cpp's server, in the same order. `worker` computes the
//! logits.

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use super::request::LocalRequest;
use crate::{ErrorKind, ModelError};

/// Defaults of llama.cpp's server.
const TOP_K: i32 = 40;
const MIN_P: f32 = 0.05;

pub(super) struct Sampling {
    chain: LlamaSampler,
    grammar: Option<LlamaSampler>,
}

impl Sampling {
    pub(super) fn new(model: &LlamaModel, asked: &LocalRequest) -> Result<Sampling, ModelError> {
        let chain = if asked.temperature <= 0.0 {
            LlamaSampler::chain_simple([LlamaSampler::greedy()])
        } else {
            LlamaSampler::chain_simple([
                LlamaSampler::top_k(TOP_K),
                LlamaSampler::top_p(asked.top_p, 1),
                LlamaSampler::min_p(MIN_P, 1),
                LlamaSampler::temp(asked.temperature),
                LlamaSampler::dist(asked.seed),
            ])
        };
        let held = asked.grammar.as_deref().map(|text| LlamaSampler::grammar(model, text, "root"));
        let grammar = held.transpose().map_err(|error| {
            let message = format!("llama.cpp rejects the grammar or schema of the reply: {error}");
            ModelError::new(ErrorKind::Invalid, message)
        })?;
        Ok(Sampling { chain, grammar })
    }

    /// Samples the token after position `at` of the last batch.
    pub(super) fn next(&mut self, context: &LlamaContext<'_>, at: i32) -> Result<LlamaToken, ModelError> {
        let free = self.picked(context.token_data_array_ith(at))?;
        let Some(grammar) = &mut self.grammar else { return Ok(free) };
        if allows(grammar, free) {
            return Ok(free);
        }
        // Only now check all tokens against the grammar: that costs more than the model itself.
        let mut all = context.token_data_array_ith(at);
        all.apply_sampler(grammar);
        all.data.retain(|token| token.logit().is_finite());
        self.picked(all)
    }

    /// Records that the token became part of the reply.
    pub(super) fn accept(&mut self, token: LlamaToken) {
        self.chain.accept(token);
        if let Some(grammar) = &mut self.grammar {
            grammar.accept(token);
        }
    }

    fn picked(&mut self, mut candidates: LlamaTokenDataArray) -> Result<LlamaToken, ModelError> {
        let stuck =
            || ModelError::new(ErrorKind::Invalid, "no token of the model matches the grammar of the reply");
        if candidates.data.is_empty() {
            return Err(stuck());
        }
        candidates.apply_sampler(&mut self.chain);
        candidates.selected_token().ok_or_else(stuck)
    }
}

fn allows(grammar: &mut LlamaSampler, token: LlamaToken) -> bool {
    let mut one = LlamaTokenDataArray::from_iter([LlamaTokenData::new(token, 1.0, 0.0)], false);
    one.apply_sampler(grammar);
    one.data.first().is_some_and(|token| token.logit().is_finite())
}
