//! Kernels for the guest: found in Debian's archive, kept in a cache, checked on every use.
//!
//! A kernel comes as a package through the machine's own `apt-get`, but with an apt state of its own (lists, cache,
//! sources), so nothing of the system's set-up is read but its mirror, and nothing is written. From the package we take
//! the boot image and unpack the ELF kernel inside it: QEMU starts that directly (PVH), which saves the guest the
//! unpacking, and it carries the BTF that BPF programs are built against.
//!
//! Cache, one folder per kernel: `vmlinuz`, `vmlinux`, `config` (where the package has it), `sha256` (of the others, checked on every use).

mod apt;
mod image;

use anyhow::{bail, ensure, Context, Result};
use apt::{Apt, SUITE};
use image::{elf_inside, unpack_boot_files};
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Boot images we have met, by package version: whatever an archive hands out under these names must be these bytes.
const KNOWN: &[(&str, &str)] = &[
    ("6.18.12+deb13", "b71b0aa4c50f8aa895689df310f78cdde87f735ede556dda126aa51a6c7c299d"),
    ("6.18.15+deb13", "fb44deb1b865c78a7157fc6da7e9da7be5e253e056d229b54ba90d13d6df525f"),
    ("6.19.14+deb13", "67995890a308e1257337fe75f7bf3d06602bd15a6152e21e0484a8fc30cec474"),
    ("7.0.13+deb13", "e8f5cd5306c07aae64ad49166662ca62cec037273598a89d2bf58991d9d5e9f3"),
    ("7.1.13+deb13", "b3448df4b00789e822e0dbadc6567ed76bb1b00b86ae6d683bd6aa0d834c2639"),
    ("7.2.12+deb13", "4823b07f21f64c616c78f26634434d4ddf0a9b6bc5db119e149ff35c79718efd"),
];

/// Which kernel the guest runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelSpec {
    /// `7.0.13`: this one, else the newest of its series.
    Version(Version),
    /// `6.18`: the newest of the series.
    Series(u32, u32),
    /// `newest`: the newest there is.
    Newest,
    /// A file of one's own, `vmlinux` (ELF with a PVH entry) or a boot image.
    File(PathBuf),
}

impl Default for KernelSpec {
    fn default() -> Self {
        KernelSpec::Version(Version(7, 0, 13))
    }
}

impl FromStr for KernelSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        Ok(match (text, numbers.as_deref()) {
            ("newest", _) => KernelSpec::Newest,
            (_, Some(&[major, minor])) => KernelSpec::Series(major, minor),
            (_, Some(&[major, minor, patch])) => KernelSpec::Version(Version(major, minor, patch)),
            _ if text.contains('/') => KernelSpec::File(text.into()),
            _ => bail!(
                "kernel \"{text}\": expected a version (7.0.13), a series (6.18), \"newest\" or the path of a kernel"
            ),
        })
    }
}

impl fmt::Display for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            KernelSpec::Version(version) => write!(f, "{version}"),
            KernelSpec::Series(major, minor) => write!(f, "{major}.{minor}"),
            KernelSpec::Newest => write!(f, "newest"),
            KernelSpec::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl KernelSpec {
    /// The best of `versions` for this wish.
    fn choose<'a, T: HasVersion>(&self, versions: &'a [T]) -> Option<&'a T> {
        let newest = |fits: &dyn Fn(Version) -> bool| {
            versions.iter().filter(|one| fits(one.version())).max_by_key(|one| one.version())
        };
        match *self {
            KernelSpec::Version(wanted) => {
                newest(&|v| v == wanted).or_else(|| newest(&|v| (v.0, v.1) == (wanted.0, wanted.1)))
            }
            KernelSpec::Series(major, minor) => newest(&|v| (v.0, v.1) == (major, minor)),
            KernelSpec::Newest => newest(&|_| true),
            KernelSpec::File(_) => None,
        }
    }
}

trait HasVersion {
    fn version(&self) -> Version;
}

/// Major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A kernel in the cache (or a file of the user's), checked.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `7.0.13+deb13`, or the path for a file of the user's.
    pub name: String,
    /// What QEMU boots: the ELF kernel with its BTF.
    pub vmlinux: PathBuf,
    /// The boot image it was taken from.
    pub vmlinuz: PathBuf,
    /// Its build configuration, where known.
    pub config: Option<PathBuf>,
}

/// Find `spec` in the cache or fetch it. `say` is told what is going on, a line at a time.
pub fn obtain(spec: &KernelSpec, say: &mut dyn FnMut(&str)) -> Result<Kernel> {
    if let KernelSpec::File(path) = spec {
        ensure!(path.is_file(), "kernel {}: no such file", path.display());
        return Ok(Kernel {
            name: path.display().to_string(),
            vmlinux: path.clone(),
            vmlinuz: path.clone(),
            config: None,
        });
    }
    ensure!(
        cfg!(target_arch = "x86_64"),
        "the kernels tierce fetches are for amd64 hosts, and this machine is another"
    );
    let cache = cache_folder()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let lock = File::create(cache.join("lock"))?;
    if rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        say("waiting for another tierce that fetches a kernel");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
    }
    let cached = cached(&cache);
    let found = spec.choose(&cached);
    let enough = match (spec, found) {
        (KernelSpec::Version(wanted), Some(found)) => {
            *wanted == found.version || cache.join(gone(spec)).exists()
        }
        (KernelSpec::Series(..), Some(_)) => true,
        _ => false, // what is newest, only the archive knows
    };
    match found {
        Some(found) if enough => found.check(),
        Some(found) => match fetch(spec, &cache, say) {
            Ok(fetched) => fetched.check(),
            Err(error) => {
                say(&format!("{error:#}; taking the cached {}", found.name));
                found.check()
            }
        },
        None => fetch(spec, &cache, say)?.check(),
    }
}

/// The name of the note that a version is no longer in the archive.
fn gone(spec: &KernelSpec) -> String {
    format!("gone-{spec}")
}

/// `$XDG_CACHE_HOME/tierce/kernels`, or the same under `~/.cache`.
pub fn cache_folder() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join("tierce/kernels"))
        .context("neither XDG_CACHE_HOME nor HOME names a folder to keep kernels in")
}

/// A folder of the cache.
struct Cached {
    folder: PathBuf,
    name: String,
    version: Version,
}

impl HasVersion for Cached {
    fn version(&self) -> Version {
        self.version
    }
}

fn cached(cache: &Path) -> Vec<Cached> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = parse_version(name.split_once('+')?.0)?;
            Some(Cached { folder: entry.path(), name, version })
        })
        .collect()
}

fn parse_version(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let version = Version(parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    parts.next().is_none().then_some(version)
}

impl Cached {
    fn check(&self) -> Result<Kernel> {
        let damaged = || {
            format!(
                "the cached kernel {} is damaged; remove {} and fetch it again",
                self.name,
                self.folder.display()
            )
        };
        let sums = fs::read_to_string(self.folder.join("sha256")).with_context(damaged)?;
        for line in sums.lines() {
            let (sum, file) = line.split_once("  ").with_context(damaged)?;
            ensure!(
                sha256_of(&self.folder.join(file)).with_context(damaged)? == sum,
                "{}: {file} changed",
                damaged()
            );
            if file == "vmlinuz" {
                check_known(&self.name, sum)?;
            }
        }
        Ok(Kernel {
            name: self.name.clone(),
            vmlinux: self.folder.join("vmlinux"),
            vmlinuz: self.folder.join("vmlinuz"),
            config: Some(self.folder.join("config")).filter(|path| path.exists()),
        })
    }
}

fn check_known(name: &str, sum: &str) -> Result<()> {
    match KNOWN.iter().find(|(known, _)| *known == name) {
        Some((_, expected)) if *expected != sum => {
            bail!("kernel {name}: its boot image has sha256 {sum}, but the known one is {expected}")
        }
        _ => Ok(()),
    }
}

fn sha256_of(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&block[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// --- fetching -----------------------------------------------------------------------------------------------------

/// A package with a kernel: `linux-binary-…` (the image alone, from 7.0 on) or `linux-image-…` (with modules).
#[derive(Debug, PartialEq)]
struct Package {
    name: String,
    /// `7.0.13+deb13`
    build: String,
    version: Version,
    image_only: bool,
}

impl HasVersion for Package {
    fn version(&self) -> Version {
        self.version
    }
}

impl Package {
    fn parse(name: &str) -> Option<Package> {
        let rest = name.strip_prefix("linux-")?;
        let (kind, rest) = rest.split_once('-')?;
        let build = rest.strip_suffix("-cloud-amd64")?;
        let (version, tail) = build.split_once('+')?;
        let release = tail.strip_prefix("deb")?;
        let plain = matches!(kind, "binary" | "image") && release.chars().all(|c| c.is_ascii_digit());
        let version = parse_version(version).filter(|_| plain)?;
        Some(Package { name: name.into(), build: build.into(), version, image_only: kind == "binary" })
    }
}

fn fetch(spec: &KernelSpec, cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Cached> {
    let apt = Apt::new(cache.join("fetching"))?;
    say(&format!("looking for kernel {spec} in {SUITE}"));
    apt.run("apt-get", &["update"])?;
    let names = apt.run("apt-cache", &["pkgnames", "linux-"])?;
    let mut packages: Vec<Package> = names.lines().filter_map(Package::parse).collect();
    packages.sort_by(|a, b| match a.version.cmp(&b.version) {
        Ordering::Equal => a.image_only.cmp(&b.image_only), // the small package last: of equals, the last is taken
        unequal => unequal,
    });
    let package = spec.choose(&packages).with_context(|| {
        let mut there: Vec<String> = packages.iter().map(|package| package.version.to_string()).collect();
        there.dedup();
        format!("{SUITE} has no kernel {spec}; it has {}", there.join(", "))
    })?;
    if let KernelSpec::Version(wanted) = spec {
        if *wanted != package.version {
            say(&format!("{wanted} is no longer in the archive, taking {}", package.version));
            fs::write(cache.join(gone(spec)), &package.build)?;
        }
    }
    let folder = cache.join(&package.build);
    let result = Cached { folder: folder.clone(), name: package.build.clone(), version: package.version };
    if folder.is_dir() {
        return Ok(result);
    }
    say(&format!("downloading {}", package.name));
    apt.run("apt-get", &["download", &package.name])?;
    let deb = fs::read_dir(apt.folder())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "deb"))
        .context("apt-get downloaded nothing")?;
    say("unpacking the kernel");
    let new = apt.path("kernel");
    fs::create_dir(&new)?;
    unpack_boot_files(&deb, &new)?;
    let image = fs::read(new.join("vmlinuz"))?;
    let sum = hex(&Sha256::digest(&image));
    check_known(&package.build, &sum)?;
    fs::write(new.join("vmlinux"), elf_inside(&image).context("the boot image of the package")?)?;
    let mut sums = String::new();
    for file in ["config", "vmlinux", "vmlinuz"] {
        if new.join(file).exists() {
            sums += &format!("{}  {file}\n", sha256_of(&new.join(file))?);
        }
    }
    fs::write(new.join("sha256"), sums)?;
    fs::rename(&new, &folder)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::apt::Scratch;
    use super::*;

    fn package(name: &str) -> Package {
        Package::parse(name).unwrap()
    }

    #[test]
    fn specs_are_read_and_written() {
        for text in ["7.0.13", "6.18", "newest", "./vmlinux", "/boot/x"] {
            assert_eq!(text.parse::<KernelSpec>().unwrap().to_string(), text);
        }
        for text in ["", "7", "7.x", "7.0.1.2", "latest", "-1.2"] {
            let error = text.parse::<KernelSpec>().unwrap_err().to_string();
            assert!(error.contains("expected a version (7.0.13)"), "{text}: {error}");
        }
    }

    #[test]
    fn packages_are_told_from_others() {
        assert_eq!(package("linux-binary-7.0.13+deb13-cloud-amd64").version, Version(7, 0, 13));
        assert!(!package("linux-image-6.18.15+deb13-cloud-amd64").image_only);
        for name in [
            "linux-image-6.18.15+deb13-amd64",
            "linux-image-6.18.15+deb13-cloud-amd64-unsigned",
            "linux-headers-7.0.13+deb13-cloud-amd64",
            "linux-binary-7.0.13+rpt1-cloud-amd64",
            "linux-doc-7.0",
        ] {
            assert_eq!(Package::parse(name), None);
        }
    }

    #[test]
    fn the_exact_version_else_the_newest_of_its_series() {
        let there: Vec<Package> = ["6.18.9", "6.18.15", "7.0.9", "7.0.13", "7.1.2"]
            .map(|version| package(&format!("linux-binary-{version}+deb13-cloud-amd64")))
            .into();
        let chosen =
            |spec: &str| spec.parse::<KernelSpec>().unwrap().choose(&there).map(|p| p.version.to_string());
        for (spec, expected) in [
            ("7.0.9", Some("7.0.9")),
            ("7.0.99", Some("7.0.13")),
            ("6.18", Some("6.18.15")),
            ("newest", Some("7.1.2")),
            ("6.12", None),
            ("6.12.1", None),
        ] {
            assert_eq!(chosen(spec).as_deref(), expected, "{spec}");
        }
    }

    #[test]
    fn a_damaged_cache_is_refused() {
        let folder = std::env::temp_dir().join(format!("tierce-kernel-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let _remove = Scratch(folder.clone());
        let cached = Cached { folder: folder.clone(), name: "9.9.9+deb13".into(), version: Version(9, 9, 9) };
        let refused = || format!("{:#}", cached.check().unwrap_err());
        assert!(refused().contains("remove"), "no sha256 file: {}", refused());
        fs::write(folder.join("vmlinux"), "abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        fs::write(folder.join("sha256"), format!("{sum}  vmlinux\n")).unwrap();
        assert!(cached.check().is_ok());
        fs::write(folder.join("vmlinux"), "abd").unwrap();
        assert!(refused().contains("vmlinux changed"), "{}", refused());
        let error = check_known("7.0.13+deb13", sum).unwrap_err().to_string();
        assert!(error.contains("the known one is"), "{error}");
    }

    #[test]
    fn a_file_of_the_users_must_exist() {
        let error = obtain(&KernelSpec::File("/no/such/vmlinux".into()), &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("no such file"));
    }
}
