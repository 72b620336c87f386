//! Clients for language models.
//!
//! A [`Conversation`] holds the messages, each encoded once for its [`Wire`]; a [`Model`] sends it and
//! returns one [`Reply`], passing every fragment to a sink as it arrives. Models are HTTP servers ([`http`]),
//! scripts ([`scripted`]), cassettes ([`recorded`]) or, with the feature `local`, files loaded into this
//! process; [`Models`] opens them by the name the user gave. The wire codecs ([`wire`], [`sse`]) do no I/O:
//! they are fed bytes. Retrying is up to the caller, by the pure policy in [`retry`], because each attempt is
//! a step in the caller's journal.

mod asking;
pub mod choose;
pub mod client;
pub mod conversation;
pub mod error;
pub mod fault;
pub mod frames;
pub mod http;
#[cfg(feature = "local")]
mod local;
pub mod message;
pub mod price;
pub mod profile;
pub mod provider;
pub mod recorded;
pub mod request;
pub mod retry;
mod schema_calls;
pub mod scripted;
pub mod secret;
pub mod sse;
pub mod stream;
pub mod text_calls;
pub mod tokens;
pub mod wire;

pub use choose::{ChoiceError, Clock, Models, Settings, Target, has_local_models};
pub use client::{BoxFuture, Delta, Model};
pub use conversation::{Conversation, Lent};
pub use error::{ErrorKind, ModelError};
pub use frames::Frames;
pub use http::catalog::Listed;
pub use http::http_client;
pub use message::{Image, Message, Reasoning, Reply, StopReason, ToolCall, ToolSpec, Usage};
pub use price::{Price, Prices};
pub use profile::{EditFormat, Profile, Profiles, ToolFormat, Traits};
pub use recorded::recorder::Recorder;
pub use request::{Open, OpenTool, RequestOptions, ToolChoice};
pub use retry::RetryPolicy;
pub use secret::Secret;
pub use tokens::Estimator;
pub use tokio_util::sync::CancellationToken;
pub use wire::{Dialect, Wire};
