//! Fuzzes decoding of chat completions responses in chunks of any size.
#![no_main]

use fusee_fuzz::reply_is_the_same_however_it_is_cut;
use fusee_model::Wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| reply_is_the_same_however_it_is_cut(Wire::Chat, input));
