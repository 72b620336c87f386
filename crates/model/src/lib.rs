//! Clients for language models.
//!
//! A [`Conversation`] holds the messages, each encoded once for its [`Wire`]; a [`Model`] sends it and
//! returns one [`Reply`], passing every fragment to a sink as it arrives. Models are HTTP servers ([`http`]),
//! scripts ([`script`]), cassettes ([`cassette`]) or, with the feature `local`, files loaded into this
//! process; [`Models`] opens them by the name the user gave. The wire codecs ([`wire`], [`sse`]) do no I/O:
//! they are fed bytes. Retrying is up to the caller, by the pure policy in [`retry`], because each attempt is
//! a step in the caller's journal.

pub mod body;
mod call_protocol;
pub mod cassette;
pub mod connection;
pub mod conversation;
pub mod error;
pub mod error_classifier;
pub mod http;
#[cfg(feature = "local")]
mod local;
pub mod message;
pub mod model;
pub mod open;
pub mod price;
pub mod profile;
pub mod repetition;
pub mod request;
pub mod retry;
mod schema_calls;
pub mod script;
pub mod secret;
pub mod sse;
pub mod text_calls;
pub mod tokens;
pub mod wire;

pub use body::BodyChunks;
pub use cassette::recorder::Recorder;
pub use connection::{Connection, ConnectionOverrides, ResolveError, ResolvedModel};
pub use conversation::{Conversation, TemporaryTail};
pub use error::{ErrorKind, ModelError};
pub use http::list_models::ServedModel;
pub use http::{http_client, http_client_at};
pub use message::{Image, Message, Reasoning, Reply, StopReason, ToolCall, ToolSpec, Usage};
pub use model::{BoxFuture, Model, ReplyDelta};
pub use open::{ModelRef, Models, OpenError, WallClock, has_local_models};
pub use price::{Price, Prices};
pub use profile::{ComputerDisplay, ComputerTool, EditFormat, ModelTraits, Profile, Profiles, ToolFormat};
pub use repetition::{Repetition, RepetitionDetector};
pub use request::{AllowedOutput, AllowedTool, RequestOptions, ToolChoice};
pub use retry::RetryPolicy;
pub use secret::Secret;
pub use tokens::Estimator;
pub use tokio_util::sync::CancellationToken;
pub use wire::{Dialect, Wire};
