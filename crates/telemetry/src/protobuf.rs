//! Writes protobuf messages. OTLP needs five kinds of fields, which takes less code than a generator.

/// A message being written.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number as u8 & 0x7f) | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        self.varint((u64::from(field) << 3) | wire_type);
    }

    /// A whole number, as `int64`, `uint64`, `uint32`, an enum or a bool.
    pub(crate) fn whole(&mut self, field: u32, number: u64) {
        self.key(field, 0);
        self.varint(number);
    }

    /// A number of fixed size: `fixed64`.
    pub(crate) fn fixed(&mut self, field: u32, number: u64) {
        self.key(field, 1);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A `double`.
    pub(crate) fn number(&mut self, field: u32, number: f64) {
        self.fixed(field, number.to_bits());
    }

    /// Text or bytes.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message inside this one.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        self.key(field, 2);
        let start = self.0.len();
        write(self);
        // The length goes before what was written, without a buffer for each level.
        let end = self.0.len();
        self.varint((end - start) as u64);
        let prefix = self.0.len() - end;
        self.0[start..].rotate_right(prefix);
    }

    /// A list of numbers of fixed size, packed.
    pub(crate) fn packed(&mut self, field: u32, numbers: impl Iterator<Item = u64>) {
        let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_inside_another_has_its_length_before_it() {
        let mut message = Message::default();
        message.message(1, |outer| {
            outer.whole(1, 300);
            outer.message(2, |inner| inner.bytes(3, b"ab"));
            outer.message(4, |_| {});
        });
        let expected = [0x0a, 11, 0x08, 0xac, 0x02, 0x12, 4, 0x1a, 2, b'a', b'b', 0x22, 0];
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn a_long_message_has_a_length_of_two_bytes() {
        let mut message = Message::default();
        message.message(1, |outer| outer.message(2, |inner| inner.bytes(3, &[7; 200])));
        let bytes = message.into_bytes();
        assert_eq!(bytes[..9], [0x0a, 0xce, 0x01, 0x12, 0xcb, 0x01, 0x1a, 0xc8, 0x01]);
        assert_eq!(bytes.len(), 9 + 200);
    }
}
