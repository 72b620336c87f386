//! A scripted model server on loopback that can be slow, broken, silent or abruptly disconnect.
//!
//! [`Server`] accepts connections and records requests; `reply` builds replies, `script` chooses the
//! reply for a request, `request` reads HTTP from the socket. One thread per connection keeps pauses, cuts
//! and hangs easy to read, and costs nothing at the few dozen connections of a test.

mod call_result_invariant;
mod chat;
mod formats;
mod reply;
mod request;
mod script;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use chat::Message;
pub use reply::{Framing, Prepared, Reply, ReplyPosition};
pub use request::{ReceivedRequest, RequestReader};
pub use script::Script;

use parking_lot::{Condvar, Mutex};
use reply::Finish;
use script::Choose;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Head and body of the request.
    pub arrived: ReceivedRequest,
    /// When its first byte was read.
    pub began: Instant,
    /// When its last byte was read.
    pub complete: Instant,
    /// When the last byte of the reply was written to the socket; `None` while it is being sent, or if the
    /// client left.
    pub answered: Option<Instant>,
    /// When the client was seen to leave a hanging reply.
    pub abandoned: Option<Instant>,
    /// Connection it came on, counted from zero.
    pub connection: usize,
}

/// A running server; dropping it closes every connection.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// How requests are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Record {
    /// Recorded, and checked for invariants when the server is dropped.
    Checked,
    Kept,
    /// Recorded, and the test also answers requests that are not model requests.
    Everything,
    Forgotten,
}

struct Shared {
    choose: Mutex<Choose>,
    log: Mutex<Vec<Request>>,
    changed: Condvar,
    record: Record,
    open: Mutex<HashMap<usize, TcpStream>>,
    connections: AtomicUsize,
    stopping: AtomicBool,
}

impl Server {
    /// Starts a server that plays the script: replies in order, or by match.
    pub fn start(script: impl Into<Script>) -> Self {
        Self::listening(loopback(), script.into().into_choice(), Record::Checked)
    }

    /// Starts a server with computed replies; `answer` gets the number of earlier model requests.
    pub fn with_answer_check(
        mut answer: impl FnMut(usize, &ReceivedRequest) -> Arc<Prepared> + Send + 'static,
    ) -> Self {
        let mut count = 0;
        let choose: Choose = Box::new(move |arrived| {
            count += 1;
            answer(count - 1, arrived)
        });
        Self::listening(loopback(), choose, Record::Kept)
    }

    /// Starts a server that also answers metadata requests, such as its list of models and their sizes.
    pub fn with_metadata(mut answer: impl FnMut(&ReceivedRequest) -> Reply + Send + 'static) -> Self {
        let choose: Choose = Box::new(move |arrived| answer(arrived).prepare());
        Self::listening(loopback(), choose, Record::Everything)
    }

    /// Like `with_answer_check`, without recording requests, for very large numbers of them.
    pub fn unrecorded(answer: impl FnMut(&ReceivedRequest) -> Arc<Prepared> + Send + 'static) -> Self {
        Self::listening(loopback(), Box::new(answer), Record::Forgotten)
    }

    fn listening(listener: TcpListener, choose: Choose, record: Record) -> Self {
        let address = listener.local_addr().expect("the address just bound");
        let shared = Arc::new(Shared {
            choose: Mutex::new(choose),
            log: Mutex::default(),
            changed: Condvar::new(),
            record,
            open: Mutex::default(),
            connections: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// Port the server listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Value for `--base-url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Model requests so far, in order of arrival, without probes such as `GET /v1/models`.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.lock().iter().filter(|r| r.arrived.is_for_a_model()).cloned().collect()
    }

    /// All requests so far, including probes.
    pub fn everything(&self) -> Vec<Request> {
        self.shared.log.lock().clone()
    }

    /// Number of accepted connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Closes every connection but keeps accepting new ones, like a server with a short keep-alive.
    pub fn hang_up(&self) {
        for stream in self.shared.open.lock().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Waits until `count` model requests have arrived; panics after `limit`.
    pub fn wait_for_requests(&self, count: usize, limit: Duration) -> Vec<Request> {
        self.wait_until(limit, &format!("{count} requests"), |log| {
            log.iter().filter(|r| r.arrived.is_for_a_model()).count() >= count
        });
        self.requests()
    }

    /// Waits until the client has left the hanging reply to model request `index`; panics after `limit`.
    pub fn wait_until_abandoned(&self, index: usize, limit: Duration) {
        self.wait_until(limit, &format!("request {index} to be abandoned"), |log| {
            log.iter()
                .filter(|r| r.arrived.is_for_a_model())
                .nth(index)
                .is_some_and(|r| r.abandoned.is_some())
        });
    }

    fn wait_until(&self, limit: Duration, what: &str, done: impl Fn(&[Request]) -> bool) {
        let mut log = self.shared.log.lock();
        let waited = self.shared.changed.wait_while_for(&mut log, |log| !done(log), limit);
        assert!(!waited.timed_out(), "waited {limit:?} for {what}; {} requests arrived", log.len());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.hang_up();
        // accept() has no timeout: a connection of our own wakes it.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        if self.shared.record == Record::Checked && !thread::panicking() {
            for (index, request) in self.requests().iter().enumerate() {
                let fault = call_result_invariant::fault(&request.arrived.body);
                assert_eq!(fault, None, "request {index}: {}", request.arrived.body_text());
            }
        }
    }
}

/// A port that refuses connections and that no other process can bind while this value lives.
pub struct ClosedPort {
    bound: OwnedFd,
    port: u16,
}

impl ClosedPort {
    /// Binds a port without listening on it.
    pub fn reserve() -> Self {
        use rustix::net::{AddressFamily, SocketAddrV4, SocketType};
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
        let address = rustix::net::getsockname(&socket).expect("the address just bound");
        let address = SocketAddrV4::try_from(address).expect("an IPv4 address");
        Self { bound: socket, port: address.port() }
    }

    /// Value for `--base-url`.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Starts a server on the port.
    pub fn open(self, script: impl Into<Script>) -> Server {
        rustix::net::listen(&self.bound, 128).expect("a bound socket can listen");
        Server::listening(TcpListener::from(self.bound), script.into().into_choice(), Record::Checked)
    }
}

fn loopback() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port")
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut served: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let Ok(copy) = stream.try_clone() else { continue };
        let id = shared.connections.fetch_add(1, Ordering::SeqCst);
        shared.open.lock().insert(id, copy);
        let shared = Arc::clone(shared);
        // A finished thread keeps its stack until its handle is dropped.
        served.retain(|thread| !thread.is_finished());
        served.push(thread::spawn(move || {
            let finish = serve(&stream, id, &shared).unwrap_or(Finish::Close);
            // Drop the copy first: the connection closes with its last descriptor, and how it closes is
            // decided here.
            shared.open.lock().remove(&id);
            if finish == Finish::Reset {
                let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
            }
        }));
    }
    for thread in served {
        let _ = thread.join();
    }
}

fn serve(stream: &TcpStream, connection: usize, shared: &Shared) -> io::Result<Finish> {
    stream.set_nodelay(true)?;
    let mut reader = RequestReader::new(stream);
    while let Some((began, arrived)) = reader.next_request()? {
        let complete = Instant::now();
        let is_asked = arrived.is_for_a_model() || matches!(shared.record, Record::Everything);
        let reply = if is_asked { (shared.choose.lock())(&arrived) } else { script::unknown_path(&arrived) };
        let index =
            record(shared, Request { arrived, began, complete, answered: None, abandoned: None, connection });
        deliver(stream, &reply)?;
        match reply.finish {
            Finish::KeepAlive => mark(shared, index, |request| request.answered = Some(Instant::now())),
            Finish::Hang => {
                wait_for_the_client_to_leave(stream);
                mark(shared, index, |request| request.abandoned = Some(Instant::now()));
                return Ok(Finish::Close);
            }
            Finish::Close | Finish::Reset => {
                mark(shared, index, |request| request.answered = Some(Instant::now()));
                return Ok(reply.finish);
            }
        }
    }
    Ok(Finish::Close)
}

fn deliver(mut stream: &TcpStream, reply: &Prepared) -> io::Result<()> {
    if !reply.latency.is_zero() {
        thread::sleep(reply.latency);
    }
    for (index, piece) in reply.writes.iter().enumerate() {
        if index > 0 && !reply.pause.is_zero() {
            thread::sleep(reply.pause);
        }
        stream.write_all(piece)?;
    }
    Ok(())
}

fn wait_for_the_client_to_leave(mut stream: &TcpStream) {
    let mut scrap = [0; 1024];
    while matches!(stream.read(&mut scrap), Ok(n) if n > 0) {}
}

fn record(shared: &Shared, request: Request) -> Option<usize> {
    if shared.record == Record::Forgotten {
        return None;
    }
    let mut log = shared.log.lock();
    log.push(request);
    shared.changed.notify_all();
    Some(log.len() - 1)
}

fn mark(shared: &Shared, index: Option<usize>, change: impl FnOnce(&mut Request)) {
    let Some(index) = index else { return };
    change(&mut shared.log.lock()[index]);
    shared.changed.notify_all();
}

#[cfg(test)]
mod tests;
