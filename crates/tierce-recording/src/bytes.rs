//! A file of which parts are read, and a cursor over one part. Nothing is allocated by a length that the file does not have.

use crate::refusal::{refused, RecordingError, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Longest part that is held in memory at once.
const PART_MAX: u64 = 1 << 28;

/// A file, or its bytes in memory.
pub enum Source {
    /// A file and its length.
    File(File, u64),
    /// All bytes.
    Bytes(Vec<u8>),
}

impl Source {
    /// Open a file. What is no regular file (a pipe) is read to memory, as far as `PART_MAX`.
    pub fn open(path: &Path) -> Result<Source> {
        let io = |source| RecordingError::Io { offset: 0, source };
        let mut file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_file() {
            return Ok(Source::File(file, metadata.len()));
        }
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(&mut file, PART_MAX + 1), &mut bytes)
            .map_err(io)?;
        if bytes.len() as u64 > PART_MAX {
            return refused(
                "pipe_must_be_short",
                PART_MAX,
                format!("a pipe has more, bound {PART_MAX} bytes"),
            );
        }
        Ok(Source::Bytes(bytes))
    }

    /// How long it is.
    pub fn len(&self) -> u64 {
        match self {
            Source::File(_, length) => *length,
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Those bytes, which are `what`.
    pub fn part(&self, offset: u64, length: u64, what: &str) -> Result<Vec<u8>> {
        if length > PART_MAX {
            return refused(
                "part_must_be_short",
                offset,
                format!("{what} is said to have {length} bytes, bound {PART_MAX}"),
            );
        }
        let end = offset.checked_add(length).filter(|end| *end <= self.len());
        if end.is_none() {
            return refused(
                "file_must_be_whole",
                offset,
                format!("{what} is said to have {length} bytes here, the file has {} in all", self.len()),
            );
        }
        let mut part = vec![0; length as usize];
        match self {
            Source::File(file, _) => file
                .read_exact_at(&mut part, offset)
                .map_err(|source| RecordingError::Io { offset, source })?,
            Source::Bytes(bytes) => part.copy_from_slice(&bytes[offset as usize..][..length as usize]),
        }
        Ok(part)
    }

    /// As many bytes as there are from there on, at most that many.
    pub fn up_to(&self, offset: u64, most: u64) -> Result<Vec<u8>> {
        let there = self.len().saturating_sub(offset);
        self.part(offset, there.min(most), "the file")
    }
}

/// A place in a part of a file. All numbers are little endian.
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
}

impl<'a> Cursor<'a> {
    /// At the begin of these bytes, which are there in the file.
    pub fn new(bytes: &'a [u8], base: u64) -> Cursor<'a> {
        Cursor { bytes, at: 0, base }
    }

    /// Where it is in the file.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes, which are `what`.
    pub fn take(&mut self, length: u64, what: &str) -> Result<&'a [u8]> {
        if length > self.left() as u64 {
            return refused(
                "file_must_be_whole",
                self.offset(),
                format!("{what} is said to have {length} bytes, of which {} are there", self.left()),
            );
        }
        let part = &self.bytes[self.at..][..length as usize];
        self.at += length as usize;
        Ok(part)
    }

    /// A number of 16 bits.
    pub fn u16(&mut self, what: &str) -> Result<u16> {
        let part = self.take(2, what)?;
        Ok(u16::from_le_bytes([part[0], part[1]]))
    }

    /// A number of 32 bits.
    pub fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(number(self.take(4, what)?) as u32)
    }

    /// A number of 64 bits.
    pub fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(number(self.take(8, what)?))
    }

    /// A text that ends with a zero.
    pub fn text(&mut self, what: &str) -> Result<String> {
        let Some(length) = self.bytes[self.at..].iter().position(|byte| *byte == 0) else {
            return refused("text_must_end", self.offset(), format!("{what} has no zero at its end"));
        };
        let part = self.take(length as u64 + 1, what)?;
        Ok(String::from_utf8_lossy(&part[..length]).into_owned())
    }

    /// These words have to come next.
    pub fn expect(&mut self, words: &[u8]) -> Result<()> {
        let offset = self.offset();
        let shown = String::from_utf8_lossy(words).trim_end_matches('\0').to_string();
        let found = self.take(words.len() as u64, &format!("`{shown}`"))?;
        if found != words {
            let found = String::from_utf8_lossy(found).escape_default().to_string();
            return refused("word_must_be_known", offset, format!("here is `{found}`, bound `{shown}`"));
        }
        Ok(())
    }
}

/// Up to eight bytes as a number.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
