//! A real server on a loopback port, scripted byte by byte by a test. It implements just enough HTTP to find
//! the end of a request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// An action of the server after it has read a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    /// Closes the connection.
    Close,
    /// Sends nothing more but keeps the connection open.
    Hang,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Vec<Act>>,
    requests: Vec<String>,
    connections: usize,
}

impl Server {
    /// Each request uses the next of `answers`; for any further request the connection is closed.
    pub(crate) async fn start(answers: Vec<Vec<Act>>) -> Server {
        Server::listen(answers, None).await
    }

    /// Like `start`, with TLS.
    pub(crate) async fn encrypted(answers: Vec<Vec<Act>>, tls: TlsAcceptor) -> Server {
        Server::listen(answers, Some(tls)).await
    }

    async fn listen(answers: Vec<Vec<Act>>, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { answers: answers.into(), ..State::default() }));
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.lock().connections += 1;
                stream.set_nodelay(true).unwrap();
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => chat(stream, shared).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                chat(stream, shared).await;
                            }
                        }
                    }
                });
            }
        });
        Server { port, state }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Head and body of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.lock().connections
    }
}

async fn chat(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<Mutex<State>>) {
    while let Some(request) = read_request(&mut stream).await {
        let answer = {
            let mut state = state.lock();
            state.requests.push(request);
            state.answers.pop_front()
        };
        for act in answer.unwrap_or_else(|| vec![Act::Close]) {
            match act {
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                }
                Act::Pause(time) => tokio::time::sleep(time).await,
                Act::Close => return,
                Act::Hang => std::future::pending().await,
            }
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length: usize = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.trim().parse().unwrap());
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(String::from_utf8(bytes).unwrap())
}

/// A response with these headers and a body of known length.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<Act> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    vec![Act::Send(format!("{head}{body}").into_bytes())]
}

/// The head of a streamed reply, `events`, each as a chunk of its own, and the end of the body.
pub(crate) fn streamed(events: &[&str]) -> Vec<Act> {
    let mut acts = vec![Act::Send(STREAM_HEAD.as_bytes().to_vec())];
    acts.extend(events.iter().map(|event| Act::Send(chunk(event))));
    acts.push(Act::Send(b"0\r\n\r\n".to_vec()));
    acts
}

pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A chunk of a chunked body.
pub(crate) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
