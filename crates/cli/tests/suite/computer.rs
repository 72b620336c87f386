//! Computer use: screenshots, mouse and keyboard on a real display with a real window, and no such tool anywhere else.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{Message, Script, Server};
use serde_json::{Value, json};
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateWindowAux, EventMask, InputFocus, KeyButMask, KeyPressEvent, WindowClass,
};
use x11rb::rust_connection::{DefaultStream, RustConnection};

use crate::support::{KEY, REQUEST, fusee};

const SIZE: (u16, u16) = (640, 480);
const COLOUR: u32 = 0x0033_6699;

/// A display of its own, ended with the test.
struct Display {
    server: Child,
    number: u32,
}

impl Display {
    fn start() -> Self {
        Self::with_options(&[])
    }

    fn with_options(options: &[&str]) -> Self {
        let screen = format!("{}x{}x24", SIZE.0, SIZE.1);
        let mut server = Process::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", &screen, "-nolisten", "tcp"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is there: `cargo xtask test` installs it");
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { number: line.trim().parse().unwrap(), server }
    }

    fn name(&self) -> String {
        format!(":{}", self.number)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A window over the whole display, which takes its input.
struct Window {
    connection: RustConnection,
}

impl Window {
    fn open(display: &Display) -> Self {
        let socket = format!("/tmp/.X11-unix/X{}", display.number);
        let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        let (stream, _) = DefaultStream::from_unix_stream(stream).unwrap();
        let connection = RustConnection::connect_to_stream(stream, 0).unwrap();
        let screen = connection.setup().roots[0].clone();
        let id = connection.generate_id().unwrap();
        let events = EventMask::KEY_PRESS | EventMask::BUTTON_PRESS | EventMask::EXPOSURE;
        let aux = CreateWindowAux::new().background_pixel(COLOUR).override_redirect(1).event_mask(events);
        let (width, height) = SIZE;
        connection
            .create_window(24, id, screen.root, 0, 0, width, height, 0, WindowClass::INPUT_OUTPUT, 0, &aux)
            .unwrap();
        connection.map_window(id).unwrap();
        connection.flush().unwrap();
        while !matches!(connection.wait_for_event().unwrap(), Event::Expose(_)) {}
        connection.set_input_focus(InputFocus::PARENT, id, x11rb::CURRENT_TIME).unwrap().check().unwrap();
        Self { connection }
    }

    /// What came in, in words, once there are this many.
    fn input(&self, count: usize) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(20);
        let mut input = Vec::new();
        while input.len() < count && Instant::now() < until {
            match self.connection.poll_for_event().unwrap() {
                Some(Event::ButtonPress(press)) => {
                    input.push(format!("button {} at {},{}", press.detail, press.event_x, press.event_y));
                }
                Some(Event::KeyPress(press)) => input.extend(self.typed(&press)),
                Some(_) => {}
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        input
    }

    /// The keysym of a key, unless it only modifies others.
    fn typed(&self, press: &KeyPressEvent) -> Option<String> {
        let mapping = self.connection.get_keyboard_mapping(press.detail, 1).unwrap().reply().unwrap();
        let column = usize::from(press.state.contains(KeyButMask::SHIFT));
        let keysym = mapping.keysyms[column];
        let control = if press.state.contains(KeyButMask::CONTROL) { "ctrl+" } else { "" };
        (!(0xffe1..=0xffee).contains(&keysym)).then(|| format!("{control}{keysym:#x}"))
    }
}

fn act(arguments: Value) -> Message {
    Message::call("computer", arguments)
}

fn run<'p>(project: &'p Project, model: &str, server: &Server) -> Command<'p> {
    fusee(project)
        .args(["run", REQUEST, "--json", "--run-id", "r", "--model", model, "--base-url", &server.base_url()])
        .env("ANTHROPIC_API_KEY", KEY)
        .env("OPENAI_API_KEY", KEY)
}

fn serve(messages: &[Message]) -> Server {
    Server::start(messages.iter().map(Message::anthropic).collect::<Script>())
}

/// The offered tools that are called `computer`, and the header that allows one.
fn offered(server: &Server) -> (Vec<Value>, Option<String>) {
    let request = &server.requests()[0].arrived;
    let tools = request.json()["tools"].as_array().unwrap().clone();
    let named = |tool: &Value| tool["name"] == "computer" || tool["function"]["name"] == "computer";
    (tools.into_iter().filter(named).collect(), request.header("anthropic-beta").map(str::to_owned))
}

#[test]
fn a_model_sees_and_uses_a_real_window() {
    let display = Display::start();
    let window = Window::open(&display);
    let project = Project::new();
    let server = serve(&[
        act(json!({"action": "screenshot"})),
        act(json!({"action": "left_click", "coordinate": [100, 50]})),
        act(json!({"action": "type", "text": "Hi, é"})),
        act(json!({"action": "key", "text": "ctrl+s"})),
        act(
            json!({"action": "scroll", "coordinate": [10, 20], "scroll_direction": "down", "scroll_amount": 2}),
        ),
        act(json!({"action": "cursor_position"})),
        act(json!({"action": "mouse_move", "coordinate": [9000, 1]})),
        Message::text("It is blue."),
    ]);
    let command = run(&project, "anthropic:claude-sonnet-4-5", &server);
    let events = command.env("FUSEE_COMPUTER_DISPLAY", display.name()).run().exits(0).events();

    let tool = json!({
        "type": "computer_20250124", "name": "computer", "display_width_px": SIZE.0, "display_height_px": SIZE.1,
        "display_number": display.number
    });
    assert_eq!(offered(&server), (vec![tool], Some("computer-use-2025-01-24".to_owned())));
    let results: Vec<(bool, &str)> = of_type(&events, "tool_result")
        .iter()
        .map(|result| (result["ok"].as_bool().unwrap(), result["content"].as_str().unwrap()))
        .collect();
    assert_eq!(
        results,
        [
            (true, "The screen (640 × 480 pixels) is shown with this answer."),
            (true, "Clicked at 100, 50."),
            (true, "Typed 5 characters."),
            (true, "Pressed the keys."),
            (true, "Scrolled at 10, 20."),
            (true, "X=10,Y=20"),
            (false, "9000, 1 is not inside of the screen, which has 640 × 480 pixels"),
        ]
    );
    let input = [
        "button 1 at 100,50",
        "0x48",
        "0x69",
        "0x2c",
        "0x20",
        "0xe9",
        "ctrl+0x73",
        "button 5 at 10,20",
        "button 5 at 10,20",
    ];
    assert_eq!(window.input(input.len()), input);

    let second = server.requests()[1].arrived.json();
    let images: Vec<&Value> = second["messages"].as_array().unwrap().iter().flat_map(images).collect();
    assert_eq!(images.len(), 1, "{second:#}");
    assert_eq!(images[0]["source"]["media_type"], "image/png");
    let file = base64::engine::general_purpose::STANDARD
        .decode(images[0]["source"]["data"].as_str().unwrap())
        .unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((frame.width, frame.height), (SIZE.0.into(), SIZE.1.into()));
    assert_eq!(pixels[..3], [0x33, 0x66, 0x99]);

    // A replay needs no display.
    drop((window, display));
    fusee(&project).args(["replay", "r"]).run().exits(0);
}

/// Images in the tool results of a message.
fn images(message: &Value) -> Vec<&Value> {
    let blocks = message["content"].as_array().into_iter().flatten();
    let parts = blocks.filter_map(|block| block["content"].as_array()).flatten();
    parts.filter(|part| part["type"] == "image").collect()
}

#[test]
fn programs_in_the_sandbox_reach_the_display() {
    let display = Display::start();
    let project = Project::new();
    let program = "import os, socket\n\
                   s = socket.socket(socket.AF_UNIX)\n\
                   s.connect('/tmp/.X11-unix/X' + os.environ['DISPLAY'][1:])\n\
                   s.sendall(bytes([108, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]))\n\
                   print('the display says', s.recv(1)[0])\n";
    let project = project.with("hello.py", program);
    let server =
        serve(&[Message::call("shell", json!({"command": "python3 hello.py"})), Message::text("Done.")]);
    let command = run(&project, "anthropic:claude-sonnet-4-5", &server);
    let events = command.env("FUSEE_COMPUTER_DISPLAY", display.name()).run().exits(0).events();
    let result = of_type(&events, "tool_result")[0];
    assert!(result["content"].as_str().unwrap().starts_with("the display says 1\n"), "{result:#}");
}

/// An Xauthority file with one cookie, for any display.
fn cookie_file() -> Vec<u8> {
    let field = |content: &[u8]| [&(content.len() as u16).to_be_bytes()[..], content].concat();
    [vec![0xff, 0xff], field(b""), field(b""), field(b"MIT-MAGIC-COOKIE-1"), field(&[7; 16])].concat()
}

#[test]
fn a_display_that_wants_a_cookie_is_given_it() {
    let place = tempfile::tempdir().unwrap();
    let cookie = place.path().join("cookie");
    std::fs::write(&cookie, cookie_file()).unwrap();
    let cookie = cookie.to_str().unwrap();
    let display = Display::with_options(&["-auth", cookie]);
    let server = serve(&[
        act(json!({"action": "screenshot"})),
        Message::call("shell", json!({"command": "wc -c < \"$XAUTHORITY\""})),
        Message::text("Done."),
    ]);
    let project = Project::new();
    let command = || {
        let command = run(&project, "anthropic:claude-sonnet-4-5", &server);
        command.env("FUSEE_COMPUTER_DISPLAY", display.name())
    };
    let refused = command().run().exits(2);
    assert!(refused.stderr.contains("cannot use the display"), "{}", refused.stderr);
    let events = command().env("XAUTHORITY", cookie).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    assert_eq!(results[0]["ok"], true, "{:#}", results[0]);
    let size = cookie_file().len();
    assert!(results[1]["content"].as_str().unwrap().starts_with(&format!("{size}\n")), "{:#}", results[1]);
}

#[test]
fn without_a_display_or_a_model_for_it_there_is_no_such_tool() {
    let display = Display::start();
    let (project, of_older, of_chat) = (Project::new(), Project::new(), Project::new());
    let without = serve(&[Message::text("Done.")]);
    run(&project, "anthropic:claude-sonnet-4-5", &without).run().exits(0);
    assert_eq!(offered(&without), (Vec::new(), None));

    let older = serve(&[Message::text("Done.")]);
    let command = run(&of_older, "anthropic:claude-3-opus", &older);
    command.env("FUSEE_COMPUTER_DISPLAY", display.name()).run().exits(0);
    assert_eq!(offered(&older), (Vec::new(), None));

    let chat = Server::start([Message::text("Done.").stream()].into_iter().collect::<Script>());
    let command = run(&of_chat, "openai:gpt-4o", &chat).args(["--api", "chat"]);
    command.env("FUSEE_COMPUTER_DISPLAY", display.name()).run().exits(0);
    assert_eq!(offered(&chat), (Vec::new(), None));
}

#[test]
fn a_display_that_cannot_be_used_is_an_error_before_anything_is_sent() {
    let server = serve(&[Message::text("Done.")]);
    let project = Project::new();
    let command = || run(&project, "anthropic:claude-sonnet-4-5", &server);
    let missing = command().env("FUSEE_COMPUTER_DISPLAY", ":4000000").run().exits(2);
    assert!(missing.stderr.contains("cannot use the display :4000000"), "{}", missing.stderr);
    let wrong = command().env("FUSEE_COMPUTER_DISPLAY", "host:1").run().exits(2);
    assert!(wrong.stderr.contains("not a local display"), "{}", wrong.stderr);
    // A project may not choose a display.
    let project = Project::new().with("fusee.toml", "computer = { display = \":4000000\" }\n");
    run(&project, "anthropic:claude-sonnet-4-5", &server).run().exits(0);
    assert_eq!(offered(&server), (Vec::new(), None));
}
