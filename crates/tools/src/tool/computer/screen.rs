//! The connection to an X11 display: its image, and input through the XTEST extension.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, ImageFormat, ImageOrder, KEY_PRESS_EVENT,
    KEY_RELEASE_EVENT, MOTION_NOTIFY_EVENT, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::{DefaultStream, RustConnection};
use xkeysym::key;

use super::{Button, DisplayNumber, Point, authority, keys};

/// How long programs get to learn of a key that was added to the keyboard.
const MAPPING_TIME: Duration = Duration::from_millis(50);

/// A display.
pub(super) struct Screen {
    connection: RustConnection,
    root: Window,
    pub(super) width: u16,
    pub(super) height: u16,
}

/// Pixels of a part of the screen, three bytes each.
pub(super) struct ScreenImage {
    pub(super) width: u32,
    pub(super) height: u32,
    pixels: Vec<u8>,
}

impl Screen {
    /// Connects to a display, with its cookie if the file has one.
    pub(super) fn open(display: DisplayNumber, authority: Option<&Path>) -> Result<Self, String> {
        let failed = |cause: &dyn std::fmt::Display| format!("cannot use the display {display}: {cause}");
        let stream = UnixStream::connect(display.socket()).map_err(|error| failed(&error))?;
        let (stream, _) = DefaultStream::from_unix_stream(stream).map_err(|error| failed(&error))?;
        let (name, data) = authority::read(authority, display);
        let connection = RustConnection::connect_to_stream_with_auth_info(stream, 0, name, data)
            .map_err(|error| failed(&error))?;
        let screen = connection.setup().roots.first().ok_or_else(|| failed(&"it has no screen"))?;
        let (root, width, height) = (screen.root, screen.width_in_pixels, screen.height_in_pixels);
        Ok(Self { connection, root, width, height })
    }

    /// The image of a part of the screen: left, top, right, bottom.
    pub(super) fn image(&self, [left, top, right, bottom]: [i32; 4]) -> Result<ScreenImage, String> {
        let (width, height) = (i32::from(self.width), i32::from(self.height));
        if !(0 <= left && left < right && right <= width && 0 <= top && top < bottom && bottom <= height) {
            return Err(format!("the part is not inside of the screen, which has {width} × {height} pixels"));
        }
        let place = |value: i32| i16::try_from(value).unwrap_or(i16::MAX);
        let size = |value: i32| u16::try_from(value).unwrap_or(u16::MAX);
        let (x, y, width, height) = (place(left), place(top), size(right - left), size(bottom - top));
        let image = self
            .connection
            .get_image(ImageFormat::Z_PIXMAP, self.root, x, y, width, height, u32::MAX)
            .map_err(display_error)?
            .reply()
            .map_err(display_error)?;
        let setup = self.connection.setup();
        let format = setup.pixmap_formats.iter().find(|format| format.depth == image.depth);
        if image.depth < 24 || format.is_none_or(|format| format.bits_per_pixel != 32) {
            return Err(format!("the display has {} bits of colour; it must have 24", image.depth));
        }
        let little = setup.image_byte_order == ImageOrder::LSB_FIRST;
        let colours = |pixel: &[u8]| match (pixel, little) {
            (&[blue, green, red, _], true) | (&[_, red, green, blue], false) => [red, green, blue],
            _ => [0; 3],
        };
        let pixels = image.data.chunks_exact(4).flat_map(colours).collect();
        Ok(ScreenImage { width: width.into(), height: height.into(), pixels })
    }

    /// Where the pointer is.
    pub(super) fn pointer(&self) -> Result<Point, String> {
        let at = self
            .connection
            .query_pointer(self.root)
            .map_err(display_error)?
            .reply()
            .map_err(display_error)?;
        Ok([at.root_x.into(), at.root_y.into()])
    }

    pub(super) fn move_to(&self, [x, y]: Point) -> Result<(), String> {
        let inside = |value: i32, size: u16| {
            i16::try_from(value).ok().filter(|value| (0..i32::from(size)).contains(&i32::from(*value)))
        };
        match (inside(x, self.width), inside(y, self.height)) {
            (Some(x), Some(y)) => self.input(MOTION_NOTIFY_EVENT, 0, x, y),
            _ => Err(format!(
                "{x}, {y} is not inside of the screen, which has {} × {} pixels",
                self.width, self.height
            )),
        }
    }

    pub(super) fn press(&self, button: Button, down: bool) -> Result<(), String> {
        self.input(if down { BUTTON_PRESS_EVENT } else { BUTTON_RELEASE_EVENT }, button as u8, 0, 0)
    }

    pub(super) fn click(&self, button: Button) -> Result<(), String> {
        self.press(button, true)?;
        self.press(button, false)
    }

    /// Holds keys during an action, and releases them in reverse order, whatever comes of it.
    pub(super) fn hold(
        &self,
        keysyms: &[u32],
        act: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        let keyboard = Keyboard::new(self)?;
        let mut codes = Vec::new();
        for keysym in keysyms {
            codes.extend(keyboard.codes(self, *keysym)?);
        }
        let done = codes.iter().try_for_each(|code| self.key(*code, true)).and_then(|()| act());
        codes.iter().rev().try_for_each(|code| self.key(*code, false))?;
        done
    }

    /// Types text, key by key.
    pub(super) fn type_text(&self, text: &str) -> Result<(), String> {
        text.chars().try_for_each(|character| self.hold(&[keys::of_char(character)], || Ok(())))
    }

    fn key(&self, code: u8, down: bool) -> Result<(), String> {
        self.input(if down { KEY_PRESS_EVENT } else { KEY_RELEASE_EVENT }, code, 0, 0)
    }

    fn input(&self, kind: u8, detail: u8, x: i16, y: i16) -> Result<(), String> {
        let sent = self.connection.xtest_fake_input(kind, detail, x11rb::CURRENT_TIME, self.root, x, y, 0);
        sent.map_err(display_error)?.check().map_err(display_error)
    }
}

/// Which key of the display's keyboard gives which keysym.
struct Keyboard {
    first: u8,
    /// Keysyms of each key: plain, with shift, and so on.
    columns: usize,
    keysyms: Vec<u32>,
}

impl Keyboard {
    fn new(screen: &Screen) -> Result<Self, String> {
        let setup = screen.connection.setup();
        let (first, count) = (setup.min_keycode, setup.max_keycode - setup.min_keycode + 1);
        let mapping = screen
            .connection
            .get_keyboard_mapping(first, count)
            .map_err(display_error)?
            .reply()
            .map_err(display_error)?;
        let columns = usize::from(mapping.keysyms_per_keycode).max(1);
        Ok(Self { first, columns, keysyms: mapping.keysyms })
    }

    /// The keys to press for a keysym. One that the keyboard lacks is added and stays, because a program looks up
    /// what a key means when it comes to the event.
    fn codes(&self, screen: &Screen, keysym: u32) -> Result<Vec<u8>, String> {
        if let Some(code) = self.find(keysym, 0) {
            return Ok(vec![code]);
        }
        if let (Some(code), Some(shift)) = (self.find(keysym, 1), self.find(key::Shift_L, 0)) {
            return Ok(vec![shift, code]);
        }
        let free = self.keysyms.chunks(self.columns).position(|key| key.iter().all(|keysym| *keysym == 0));
        let code =
            free.map(|at| self.code(at)).ok_or("the keyboard has no free key for another character")?;
        let sent = screen.connection.change_keyboard_mapping(1, code, 2, &[keysym, keysym]);
        sent.map_err(display_error)?.check().map_err(display_error)?;
        std::thread::sleep(MAPPING_TIME);
        Ok(vec![code])
    }

    fn find(&self, keysym: u32, column: usize) -> Option<u8> {
        let at = self.keysyms.chunks(self.columns).position(|key| key.get(column) == Some(&keysym))?;
        Some(self.code(at))
    }

    fn code(&self, at: usize) -> u8 {
        self.first.saturating_add(u8::try_from(at).unwrap_or(u8::MAX))
    }
}

impl ScreenImage {
    pub(super) fn to_png(&self) -> Result<Vec<u8>, String> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.pixels)?;
            writer.finish()
        });
        written.map_err(|error| format!("the screenshot cannot be encoded: {error}"))?;
        Ok(file)
    }
}

fn display_error(error: impl std::fmt::Display) -> String {
    format!("the display failed: {error}")
}
