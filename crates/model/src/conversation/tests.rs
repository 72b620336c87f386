//! How a conversation keeps and encodes its messages.
