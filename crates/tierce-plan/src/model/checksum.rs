//! What is in a file, as 32 bytes.

use std::fmt;
use std::str::FromStr;

/// The SHA-256 of a file, in a plan `"sha256:"` and 64 hexadecimal digits.
///
/// ```
/// let text = format!("sha256:{}", "0a".repeat(32));
/// assert_eq!(text.parse::<tierce_plan::Checksum>().unwrap().to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checksum(pub [u8; 32]);

impl FromStr for Checksum {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("sha256:").ok_or("it does not begin with `sha256:`")?;
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err("64 hexadecimal digits follow `sha256:`");
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| "no hexadecimal digits")?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_as_it_is_written() {
        let digits = "AB".repeat(32);
        let sum: Checksum = format!("sha256:{digits}").parse().unwrap();
        assert_eq!((sum.0, sum.to_string()), ([0xab; 32], format!("sha256:{}", "ab".repeat(32))));
        for wrong in [
            "",
            "sha256",
            "sha256:",
            &digits,
            &format!("sha1:{digits}"),
            &format!("sha256:{digits}0"),
            &format!("sha256:{}", &digits[1..]),
            &format!("sha256:{}+f", &digits[2..]),
            &format!("sha256:{}é", &digits[2..]),
            &format!("sha256: {}", &digits[1..]),
        ] {
            assert!(wrong.parse::<Checksum>().is_err(), "{wrong}");
        }
    }
}
