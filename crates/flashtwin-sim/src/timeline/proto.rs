//! The wire format of Protocol Buffers, for the three types that a trace needs: varints, eight-byte numbers, and byte
//! strings with a length.

/// A message being written.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    /// Writes a field with an unsigned whole number.
    pub fn uint(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    /// Writes a field of eight bytes.
    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.bytes.extend(value.to_le_bytes());
    }

    pub fn text(&mut self, field: u32, value: &str) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.bytes.extend(value.as_bytes());
    }

    /// Writes a nested message, which `fill` writes.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        self.key(field, 2);
        let from = self.bytes.len();
        fill(self);
        // The length of the contents is written before the contents. Its encoding has a variable number of bytes, so
        // the contents are encoded first.
        let mut length = Message::default();
        length.varint((self.bytes.len() - from) as u64);
        self.bytes.splice(from..from, length.bytes);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples from the documentation of the encoding: 150 in field 1, "testing" in field 2, and in field 3 a nested
    /// message that equals the first example.
    #[test]
    fn fields_are_written_as_the_documentation_of_the_encoding_has_them() {
        let mut message = Message::default();
        message.uint(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.uint(1, 150));
        let mut expected = vec![0x08, 0x96, 0x01];
        expected.extend([0x12, 0x07]);
        expected.extend(b"testing");
        expected.extend([0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn long_inner_messages_and_fixed_numbers() {
        let mut message = Message::default();
        message.message(1, |inner| inner.text(1, &"x".repeat(300)));
        message.fixed64(47, 258);
        let bytes = message.into_bytes();
        assert_eq!(bytes[..6], [0x0a, 0xaf, 0x02, 0x0a, 0xac, 0x02]);
        assert_eq!(bytes[306..], [0xf9, 0x02, 2, 1, 0, 0, 0, 0, 0, 0]);
    }
}
