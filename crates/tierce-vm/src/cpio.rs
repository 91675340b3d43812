//! An initramfs image in the `newc` cpio format, the same bytes for the same content: paths sorted, times and owners 0.
//!
//! Repeatable runs need that: where the kernel puts a file, and how long it takes to unpack, follows from these bytes.

use std::collections::BTreeMap;

/// One thing in the image.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A folder, mode 0755.
    Dir,
    /// A symbolic link to this path.
    Link(String),
    /// A file with its content; the mode is 0755 or 0644.
    File {
        /// What is in it.
        content: Vec<u8>,
        /// Whether it may be run.
        executable: bool,
    },
}

/// An image under construction. Paths have no leading slash; folders above an entry come by themselves.
#[derive(Default)]
pub struct Image {
    entries: BTreeMap<String, Entry>,
}

impl Image {
    /// Add or replace `path`.
    pub fn add(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.entries.entry(path[..at].to_string()).or_insert(Entry::Dir);
        }
        match (self.entries.get(path), &entry) {
            (Some(Entry::Dir), Entry::Dir) => {}
            _ => _ = self.entries.insert(path.to_string(), entry),
        }
    }

    /// Add a file.
    pub fn file(&mut self, path: &str, content: impl Into<Vec<u8>>, executable: bool) {
        self.add(path, Entry::File { content: content.into(), executable });
    }

    /// Whether something is at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path.trim_matches('/'))
    }

    /// The bytes of the archive.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, (path, entry)) in self.entries.iter().enumerate() {
            let (mode, content): (u32, &[u8]) = match entry {
                Entry::Dir => (0o040755, &[]),
                Entry::Link(target) => (0o120777, target.as_bytes()),
                Entry::File { content, executable: true } => (0o100755, content),
                Entry::File { content, executable: false } => (0o100644, content),
            };
            member(&mut out, index as u32 + 1, mode, path, content);
        }
        member(&mut out, 0, 0, "TRAILER!!!", &[]);
        out.resize(out.len().next_multiple_of(512), 0);
        out
    }
}

/// Thirteen 8-digit hexadecimal fields, the name with its NUL, the content; name and content padded to 4 bytes.
fn member(out: &mut Vec<u8>, inode: u32, mode: u32, name: &str, content: &[u8]) {
    let links = 1;
    let [owner, group, time, dev_major, dev_minor, rdev_major, rdev_minor, check] = [0; 8];
    out.extend_from_slice(b"070701");
    for field in [
        inode,
        mode,
        owner,
        group,
        links,
        time,
        content.len() as u32,
        dev_major,
        dev_minor,
        rdev_major,
        rdev_minor,
        name.len() as u32 + 1,
        check,
    ] {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn folders_come_by_themselves_and_order_does_not_matter() {
        let mut a = Image::default();
        a.file("usr/bin/x", "run me", true);
        a.add("bin", Entry::Link("usr/bin".into()));
        let mut b = Image::default();
        b.add("bin", Entry::Link("usr/bin".into()));
        b.add("usr", Entry::Dir);
        b.file("/usr/bin/x", "run me", true);
        assert_eq!(a.bytes(), b.bytes());
        assert!(a.has("usr/bin") && !a.has("usr/lib"));
    }

    /// Another implementation reads what we write.
    #[test]
    fn busybox_cpio_lists_it() {
        let mut image = Image::default();
        image.file("a/file", "hello", false);
        image.add("a/link", Entry::Link("file".into()));
        let mut cpio = Command::new("busybox")
            .args(["cpio", "-tv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("busybox (package busybox-static)");
        cpio.stdin.take().unwrap().write_all(&image.bytes()).unwrap();
        let listed = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        let seen: Vec<(&str, &str)> =
            listed.lines().map(|l| (&l[..10], l.split_once(":00 ").map_or(l, |(_, n)| n))).collect();
        assert_eq!(seen, [("drwxr-xr-x", "a"), ("-rw-r--r--", "a/file"), ("lrwxrwxrwx", "a/link -> file")]);
    }
}
