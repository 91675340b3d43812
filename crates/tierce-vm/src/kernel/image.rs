//! Boot images in packages, and the ELF kernel in a boot image.

use anyhow::{ensure, Context, Result};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// The boot image of a package and, where it is there, the configuration: `/boot/vmlinuz-*`, from 7.2 on
/// `/usr/lib/modules/*/vmlinuz`.
pub fn unpack_boot_files(deb: &Path, into: &Path) -> Result<()> {
    let mut unpack = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdout(Stdio::piped())
        .spawn()
        .context("dpkg-deb (package dpkg)")?;
    let mut archive = tar::Archive::new(unpack.stdout.take().unwrap());
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        if let Some(file) = boot_file(&path) {
            std::io::copy(&mut entry, &mut File::create(into.join(file))?)?;
        }
    }
    ensure!(unpack.wait()?.success(), "dpkg-deb could not read {}", deb.display());
    ensure!(into.join("vmlinuz").exists(), "{}: no boot image inside", deb.display());
    Ok(())
}

fn boot_file(path: &str) -> Option<&'static str> {
    let path = path.trim_start_matches("./");
    let in_modules = || path.strip_prefix("usr/lib/modules/")?.split_once('/').map(|(_, name)| name);
    let plain = |name: &str| path.starts_with(&format!("boot/{name}-")) || in_modules() == Some(name);
    ["vmlinuz", "config"].into_iter().find(|name| plain(name))
}

/// The ELF kernel inside a boot image: the payload that the boot protocol's header points to (offset 0x248, length
/// 0x24c, counted from the end of the set-up sectors), unpacked. Its last 4 bytes are the unpacked size.
pub fn elf_inside(image: &[u8]) -> Result<Vec<u8>> {
    let word = |at: usize| -> Result<usize> {
        let bytes = image.get(at..at + 4).context("too short for a boot image")?;
        Ok(u32::from_le_bytes(bytes.try_into().unwrap()) as usize)
    };
    ensure!(image.get(0x202..0x206) == Some(b"HdrS"), "not an x86 boot image (no HdrS at 0x202)");
    let setup_sectors = if image[0x1f1] == 0 { 4 } else { image[0x1f1] as usize };
    let start = (setup_sectors + 1) * 512 + word(0x248)?;
    let length = word(0x24c)?;
    let payload = image.get(start..start + length).context("the payload lies outside the image")?;
    let (packed, size) = payload.split_at_checked(length.wrapping_sub(4)).context("an empty payload")?;
    let size = u32::from_le_bytes(size.try_into().unwrap()) as usize;
    ensure!(packed.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]), "compressed with something other than zstd");
    ensure!(size <= 1 << 30, "an unpacked size of {size} bytes is not credible");
    let elf = zstd::bulk::decompress(packed, size).context("zstd")?;
    ensure!(elf.len() == size, "unpacked to {} bytes instead of {size}", elf.len());
    ensure!(elf.starts_with(b"\x7fELF"), "no ELF inside");
    Ok(elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_files_are_found_in_packages() {
        for (path, expected) in [
            ("./boot/vmlinuz-7.0.13+deb13-cloud-amd64", Some("vmlinuz")),
            ("./boot/config-6.18.15+deb13-cloud-amd64", Some("config")),
            ("./usr/lib/modules/7.2.12+deb13-cloud-amd64/vmlinuz", Some("vmlinuz")),
            ("./usr/lib/modules/7.2.12+deb13-cloud-amd64/kernel/vmlinuz", None),
            ("./usr/share/doc/vmlinuz-x", None),
        ] {
            assert_eq!(boot_file(path), expected, "{path}");
        }
    }

    /// A boot image with nothing but what we read.
    fn boot_image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 5 * 512];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    fn payload(content: &[u8]) -> Vec<u8> {
        let mut packed = zstd::bulk::compress(content, 3).unwrap();
        packed.extend_from_slice(&(content.len() as u32).to_le_bytes());
        packed
    }

    #[test]
    fn the_elf_is_found_in_a_boot_image() {
        let elf = [b"\x7fELF".as_slice(), &[7; 5000]].concat();
        assert_eq!(elf_inside(&boot_image(&payload(&elf))).unwrap(), elf);
    }

    #[test]
    fn bad_boot_images_are_refused() {
        let mut cut = boot_image(&payload(b"\x7fELF"));
        cut.truncate(cut.len() - 1);
        for (image, expected) in [
            (vec![0; 100], "not an x86 boot image"),
            (cut, "lies outside"),
            (boot_image(&[]), "empty payload"),
            (boot_image(b"\x1f\x8b\x08\x00\x00\x00\x00\x00"), "other than zstd"),
            (boot_image(&payload(b"MZ")), "no ELF inside"),
            (boot_image(&[&payload(b"\x7fELF")[..8], &[255; 4]].concat()), "not credible"),
        ] {
            let error = format!("{:#}", elf_inside(&image).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
