//! The chat in a terminal: the cost of drawing while an answer streams in, the latency of a key, and memory
//! growth. The terminal is a pseudo-terminal from `script` (util-linux), whose output is read byte by byte.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Prepared, Server};
use parking_lot::Mutex;
use serde_json::json;

use super::Figure;
use super::measure::{Programs, median, ms};

/// Number of deltas of the answer, and deltas per second.
const DELTAS: usize = 1_600;
const A_SECOND: u64 = 200;

/// Number of keys timed during the stream.
const KEYS: usize = 40;

/// Turns of the long chat, and turns per message.
const TURNS: usize = 2_000;
const A_MESSAGE: usize = 100;

/// Kernel clock ticks per second.
const TICKS: f64 = 100.0;

/// Maximum time until something is shown.
const PATIENCE: Duration = Duration::from_secs(120);

/// A chat in a terminal of 80 columns and 24 rows.
struct Terminal {
    script: Child,
    keyboard: ChildStdin,
    shown: Arc<Mutex<String>>,
    _project: Project,
}

impl Terminal {
    fn open(programs: &Programs, server: &Server) -> Self {
        let lines: String = (1..=50).map(|n| format!("line {n} of a small file\n")).collect();
        let project = Project::new().with("lines.txt", &lines);
        let line = format!(
            "stty cols 80 rows 24; exec {} -m openai:bench --api chat --base-url {} --sandbox off --max-turns 1000",
            programs.fusee.display(),
            server.base_url()
        );
        let mut script = Command::new("script")
            .args(["-qfec", &line, "/dev/null"])
            .current_dir(project.dir())
            .env("HOME", project.home())
            .env("OPENAI_API_KEY", "none")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script from util-linux is installed");
        let keyboard = script.stdin.take().expect("a pipe");
        let mut screen = script.stdout.take().expect("a pipe");
        let shown = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&shown);
        thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                heard.lock().push_str(&text);
            }
        });
        let terminal = Self { script, keyboard, shown, _project: project };
        terminal.until("approve auto");
        terminal
    }

    /// Types keys and clears the captured output.
    fn types(&mut self, keys: &str) {
        self.shown.lock().clear();
        self.keyboard.write_all(keys.as_bytes()).expect("an open terminal");
        self.keyboard.flush().expect("an open terminal");
    }

    /// Waits until the text is shown; returns the time it took.
    fn until(&self, words: &str) -> Duration {
        let begun = Instant::now();
        while !self.shown.lock().contains(words) {
            assert!(begun.elapsed() < PATIENCE, "{words:?} was not shown within {PATIENCE:?}");
            thread::sleep(Duration::from_micros(200));
        }
        begun.elapsed()
    }

    /// Process id of fusee, the child of `script`.
    fn process(&self) -> u32 {
        let id = self.script.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("a process");
        children.split_whitespace().next().and_then(|id| id.parse().ok()).expect("its child")
    }

    fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process())).expect("a process");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().expect("a count of ticks");
        (ticks(11) + ticks(12)) / TICKS
    }

    fn resident_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        let kb = line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("a number");
        kb / 1024.0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Closing its input closes the terminal.
        let _ = self.keyboard.write_all(b"\x15/quit\r");
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// CPU share and key latency while an answer streams in.
pub(crate) fn feel(programs: &Programs) -> Vec<Figure> {
    let text: String =
        (0..DELTAS).map(|n| if n % 100 == 99 { "\n\n".to_owned() } else { format!("w{n:05} ") }).collect();
    let answer = Message::text(&text).usage(1000, 20).stream_in_deltas_of(7);
    let mut delta = 0;
    let answer = answer.rearranged(|events| delta = events[1].len()).in_pieces_of(delta);
    let answer = answer.pausing(Duration::from_millis(1_000 / A_SECOND)).prepare();
    let server = Server::with_answer_check(move |_, _| Arc::clone(&answer));
    let mut terminal = Terminal::open(programs, &server);
    terminal.types("go\r");
    terminal.until("w00010");
    let (begun, cpu) = (Instant::now(), terminal.cpu_seconds());
    let mut keys = Vec::new();
    let mut typed = String::new();
    for _ in 0..KEYS {
        typed.push('x');
        terminal.types("x");
        keys.push(ms(terminal.until(&typed)));
        thread::sleep(Duration::from_millis(100));
    }
    let share = (terminal.cpu_seconds() - cpu) / begun.elapsed().as_secs_f64() * 100.0;
    keys.sort_by(f64::total_cmp);
    let slow = keys[keys.len() * 95 / 100];
    vec![
        Figure::at_most("chat, CPU share at 200 deltas per second", share, "%", 10.0),
        Figure::shown("chat, key latency, median", median(keys), "ms"),
        Figure::at_most("chat, key latency, p95", slow, "ms", 16.0),
    ]
}

/// Memory over a long chat, after its first compaction. The server reports no token usage, so that fusee
/// counts tokens itself and the chat grows up to its limit.
pub(crate) fn memory(programs: &Programs) -> Vec<Figure> {
    let prepare = |message: Message| message.stream_in_deltas_of(64).prepare();
    let calls: Vec<Arc<Prepared>> = (0..TURNS)
        .map(|turn| match turn % A_MESSAGE {
            last if last == A_MESSAGE - 1 => Message::text(&format!("Message {} is done.", turn / A_MESSAGE)),
            line => {
                Message::call("read_file", json!({"path": "lines.txt", "offset": line % 40 + 1, "limit": 1}))
            }
        })
        .map(prepare)
        .collect();
    let server = Server::with_answer_check(move |turn, _| Arc::clone(&calls[turn.min(TURNS - 1)]));
    let mut terminal = Terminal::open(programs, &server);
    let mut sizes = Vec::new();
    for message in 0..TURNS / A_MESSAGE {
        terminal.types("go on\r");
        terminal.until(&format!("Message {message} is done."));
        terminal.until("completed");
        sizes.push(terminal.resident_mb());
    }
    let (early, late) = (sizes[sizes.len() / 2 - 1], sizes[sizes.len() - 1]);
    vec![
        Figure::shown("chat, memory after 100 turns", sizes[0], "MB"),
        Figure::shown("chat, memory after 1 000 turns", early, "MB"),
        Figure::at_most("chat, memory added by 1 000 more turns", late - early, "MB", 2.0),
    ]
}
