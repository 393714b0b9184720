//! Bytes as lower-case hexadecimal digits.

pub fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            hex.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    hex
}
