//! `computer`: screenshot, mouse and keyboard of one X11 display. Offered only where a display is configured and to
//! models that know the tool by its provider's definition. `screen.rs` speaks to the display, `keys.rs` knows the
//! names of keys.

mod authority;
mod keys;
mod screen;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::image::ToolImage;
use crate::tool::{
    Access, CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};
use screen::Screen;

/// Name of the tool.
pub const NAME: &str = "computer";

/// Longest time that one call waits or holds a key.
const MAX_SECONDS: f64 = 60.0;
/// Most characters typed by one call.
const MAX_TYPED: usize = 10_000;
/// Most steps of the wheel in one call.
const MAX_STEPS: u32 = 100;

/// A local X11 display, `:99`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayNumber(u32);

impl DisplayNumber {
    /// Number of the display.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The socket of the display's server.
    #[must_use]
    pub fn socket(self) -> PathBuf {
        PathBuf::from(format!("/tmp/.X11-unix/X{}", self.0))
    }

    /// Connects to the display, with the cookie in the Xauthority file if there is one, and returns its width and
    /// height in pixels.
    pub fn size(self, authority: Option<&Path>) -> Result<(u16, u16), String> {
        Screen::open(self, authority).map(|screen| (screen.width, screen.height))
    }
}

impl From<u32> for DisplayNumber {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl std::str::FromStr for DisplayNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix(':').map(|rest| rest.strip_suffix(".0").unwrap_or(rest));
        let number = number.and_then(|number| number.parse().ok());
        number.map(Self).ok_or_else(|| format!("`{text}` is not a local display, such as `:99`"))
    }
}

impl std::fmt::Display for DisplayNumber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, ":{}", self.0)
    }
}

/// The tool for one display.
pub struct Computer {
    display: DisplayNumber,
    authority: Option<PathBuf>,
    definition: ToolDefinition,
}

impl Computer {
    /// The tool for this display, and the Xauthority file with its cookie. It connects with each call, so that none is
    /// needed to replay one.
    #[must_use]
    pub fn new(display: DisplayNumber, authority: Option<PathBuf>) -> Self {
        let point = json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 });
        let definition = ToolDefinition {
            name: Cow::Borrowed(NAME),
            description: Cow::Borrowed("Looks at the display, and uses its mouse and keyboard."),
            parameters: json!({
                "type": "object",
                "properties": {
                    "action": { "type": "string", "enum": ACTIONS },
                    "coordinate": point,
                    "start_coordinate": point,
                    "text": { "type": "string", "description": "Text to type, or keys to press: `Return`, `ctrl+s`" },
                    "key": { "type": "string", "description": "Keys held during a click or scroll" },
                    "scroll_direction": { "type": "string", "enum": ["up", "down", "left", "right"] },
                    "scroll_amount": { "type": "integer", "minimum": 0 },
                    "duration": { "type": "number", "description": "Seconds" },
                    "region": { "type": "array", "items": { "type": "integer" }, "minItems": 4, "maxItems": 4 }
                },
                "required": ["action"],
                "additionalProperties": false
            }),
            category: Access::Write,
            aliases: &[],
            parameter_aliases: &[],
        };
        Self { display, authority, definition }
    }
}

const ACTIONS: [&str; 17] = [
    "screenshot",
    "zoom",
    "cursor_position",
    "mouse_move",
    "left_click",
    "right_click",
    "middle_click",
    "double_click",
    "triple_click",
    "left_click_drag",
    "left_mouse_down",
    "left_mouse_up",
    "scroll",
    "key",
    "hold_key",
    "type",
    "wait",
];

#[derive(Deserialize)]
struct Arguments {
    action: String,
    coordinate: Option<[i32; 2]>,
    start_coordinate: Option<[i32; 2]>,
    text: Option<String>,
    key: Option<String>,
    scroll_direction: Option<String>,
    scroll_amount: Option<u32>,
    duration: Option<f64>,
    region: Option<[i32; 4]>,
}

/// A point of the display, in pixels from the upper left.
type Point = [i32; 2];

/// X11's numbers of the buttons of a mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Button {
    Left = 1,
    Middle = 2,
    Right = 3,
    WheelUp = 4,
    WheelDown = 5,
    WheelLeft = 6,
    WheelRight = 7,
}

/// A checked call.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Screenshot,
    /// A part of the screen: left, top, right, bottom.
    Zoom([i32; 4]),
    CursorPosition,
    Wait(Duration),
    Move(Point),
    /// Clicks, also of the wheel, at a point or where the pointer is, with keys held.
    Click {
        button: Button,
        at: Option<Point>,
        times: u32,
        held: Vec<u32>,
    },
    Down,
    Up,
    Drag {
        from: Option<Point>,
        to: Point,
    },
    /// Keys pressed together, and for how long.
    Keys {
        chord: Vec<u32>,
        hold: Duration,
    },
    Type(String),
}

impl Action {
    fn from_arguments(arguments: Arguments) -> Result<Self, String> {
        let Arguments { action, coordinate: at, start_coordinate, text, duration, .. } = arguments;
        let needs = |what: &str| format!("`{action}` needs `{what}`");
        let point = || at.ok_or_else(|| needs("coordinate"));
        let held = |keys: Option<&String>| keys.map_or(Ok(Vec::new()), |keys| keys::chord(keys));
        let seconds = || match duration {
            Some(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
            Some(_) => Err(format!("`duration` must be from 0 to {MAX_SECONDS} seconds")),
            None => Err(needs("duration")),
        };
        let words = || text.clone().filter(|text| !text.is_empty()).ok_or_else(|| needs("text"));
        // Older versions of the tool name the keys held during a click in `text`.
        let modifiers = || held(arguments.key.as_ref().or(text.as_ref()));
        let click = |button, times| Ok(Self::Click { button, at, times, held: modifiers()? });
        match action.as_str() {
            "screenshot" => Ok(Self::Screenshot),
            "zoom" => arguments.region.map(Self::Zoom).ok_or_else(|| needs("region")),
            "cursor_position" => Ok(Self::CursorPosition),
            "wait" => Ok(Self::Wait(seconds()?)),
            "mouse_move" => Ok(Self::Move(point()?)),
            "left_click" => click(Button::Left, 1),
            "right_click" => click(Button::Right, 1),
            "middle_click" => click(Button::Middle, 1),
            "double_click" => click(Button::Left, 2),
            "triple_click" => click(Button::Left, 3),
            "left_mouse_down" => Ok(Self::Down),
            "left_mouse_up" => Ok(Self::Up),
            "left_click_drag" => Ok(Self::Drag { from: start_coordinate, to: point()? }),
            "scroll" => {
                let button = match arguments.scroll_direction.as_deref() {
                    Some("up") => Button::WheelUp,
                    Some("down") => Button::WheelDown,
                    Some("left") => Button::WheelLeft,
                    Some("right") => Button::WheelRight,
                    _ => return Err(needs("scroll_direction")),
                };
                click(button, arguments.scroll_amount.unwrap_or(1).min(MAX_STEPS))
            }
            "key" => Ok(Self::Keys { chord: keys::chord(&words()?)?, hold: Duration::ZERO }),
            "hold_key" => Ok(Self::Keys { chord: keys::chord(&words()?)?, hold: seconds()? }),
            "type" => match words()? {
                text if text.chars().count() > MAX_TYPED => {
                    Err(format!("`text` has more than {MAX_TYPED} characters; type it in parts"))
                }
                text => Ok(Self::Type(text)),
            },
            other => Err(format!("there is no action `{other}`; there are {}", ACTIONS.join(", "))),
        }
    }

    /// Performs the action; the answer says what was done.
    fn perform(
        &self,
        display: DisplayNumber,
        authority: Option<&Path>,
        image_bytes: usize,
    ) -> Result<ToolOutput, String> {
        let screen = Screen::open(display, authority)?;
        let done = |text: String| Ok(ToolOutput::done(text));
        match self {
            Self::Screenshot => {
                shown(&screen.image([0, 0, screen.width.into(), screen.height.into()])?, image_bytes)
            }
            Self::Zoom(region) => shown(&screen.image(*region)?, image_bytes),
            Self::CursorPosition => {
                let [x, y] = screen.pointer()?;
                done(format!("X={x},Y={y}"))
            }
            Self::Wait(_) => done("Waited.".to_owned()),
            Self::Move(to) => {
                screen.move_to(*to)?;
                done(format!("Moved the pointer to {}, {}.", to[0], to[1]))
            }
            Self::Click { button, at, times, held } => {
                at.map_or(Ok(()), |at| screen.move_to(at))?;
                screen.hold(held, || (0..*times).try_for_each(|_| screen.click(*button)))?;
                let [x, y] = screen.pointer()?;
                done(match button {
                    Button::Left | Button::Middle | Button::Right => format!("Clicked at {x}, {y}."),
                    _ => format!("Scrolled at {x}, {y}."),
                })
            }
            Self::Down => {
                screen.press(Button::Left, true).and_then(|()| done("Pressed the button.".to_owned()))
            }
            Self::Up => {
                screen.press(Button::Left, false).and_then(|()| done("Released the button.".to_owned()))
            }
            Self::Drag { from, to } => {
                from.map_or(Ok(()), |from| screen.move_to(from))?;
                screen.press(Button::Left, true)?;
                // The button is released even where the point is outside of the display.
                let moved = screen.move_to(*to);
                screen.press(Button::Left, false)?;
                moved?;
                done(format!("Dragged to {}, {}.", to[0], to[1]))
            }
            Self::Keys { chord, hold } => {
                screen.hold(chord, || {
                    std::thread::sleep(*hold);
                    Ok(())
                })?;
                done("Pressed the keys.".to_owned())
            }
            Self::Type(text) => {
                screen.type_text(text)?;
                done(format!("Typed {} characters.", text.chars().count()))
            }
        }
    }
}

/// An image as the answer.
fn shown(image: &screen::ScreenImage, image_bytes: usize) -> Result<ToolOutput, String> {
    let png = image.to_png()?;
    if png.len() > image_bytes {
        return Err(match image_bytes {
            0 => "this model accepts no images".to_owned(),
            most => format!(
                "the screenshot has {} bytes, more than the {most} that can be sent; zoom into a part of it",
                png.len()
            ),
        });
    }
    let images = [ToolImage::png(&png)].into();
    let content =
        format!("The screen ({} × {} pixels) is shown with this answer.", image.width, image.height);
    Ok(ToolOutput { images, ..ToolOutput::done(content) })
}

impl Tool for Computer {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Never
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async move {
            let intent = json!({ "display": self.display.to_string(), "action": arguments["action"] });
            let arguments = serde_json::from_value(arguments).map_err(|error| error.to_string());
            let action = arguments.and_then(Action::from_arguments).map_err(ToolOutput::error)?;
            Ok(PreparedCall::new(intent, action))
        })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let action: Action = match prepared.into_plan() {
                Ok(action) => action,
                Err(output) => return output,
            };
            if let Action::Wait(time) = action {
                return match context.cancel.run_until_cancelled(tokio::time::sleep(time)).await {
                    Some(()) => ToolOutput::done("Waited."),
                    None => ToolOutput::aborted("The wait was cancelled."),
                };
            }
            let (display, image_bytes) = (self.display, context.limits.image_bytes);
            let authority = self.authority.clone();
            let act = move || action.perform(display, authority.as_deref(), image_bytes);
            let done = tokio::task::spawn_blocking(act).await;
            match done {
                Ok(Ok(output)) => output,
                Ok(Err(problem)) => ToolOutput::error(problem),
                Err(error) => ToolOutput::error(format!("the action failed: {error}")),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        _arguments: &'a Value,
        _intent: &'a Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        Box::pin(async {
            InterruptedOutcome::Unknown(ToolOutput::error(
                "The process ended during this call; whether it took effect is unknown. Take a screenshot.",
            ))
        })
    }
}
