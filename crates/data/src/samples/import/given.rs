//! The bytes of a file that somebody gives, whichever program saved it.

use crate::shell::word;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Bytes of a file at most: the report of a day of probing has a tenth of it, and a device that never ends is no file.
pub const LONGEST: u64 = 1 << 30;

/// What a file is called where it is spoken of: `-` is standard input.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() }
}

/// All of a file, or of standard input where it is named `-`.
///
/// # Errors
/// It cannot be read, holds more than [`LONGEST`], or is a card, whose report is meant.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        return all(io::stdin(), LONGEST);
    }
    let target = ["sim:", "exec:", "serial:"].iter().any(|t| path.as_os_str().as_encoded_bytes().starts_with(t.as_bytes()));
    // A disk would be read for a gigabyte before it is refused.
    if std::fs::metadata(path).map_or(target, |m| m.file_type().is_block_device()) {
        return Err(Error::other(format!(
            "it is a target, and this takes a file: nandscope probe {} --json card.json",
            word(&path.display().to_string())
        )));
    }
    all(File::open(path)?, LONGEST)
}

/// All of an open file, or of standard input.
///
/// # Errors
/// As [`bytes`].
pub fn all(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut out = vec![];
    from.take(most + 1).read_to_end(&mut out)?;
    if out.len() as u64 > most {
        return Err(Error::new(ErrorKind::FileTooLarge, "it holds more than 1 GiB, which no result or log does"));
    }
    Ok(out)
}

/// All of a file of text: UTF-8, or UTF-16 with its mark, as other systems save it.
///
/// # Errors
/// As [`bytes`], or it is empty or no text.
pub fn text(path: &Path) -> io::Result<String> {
    let raw = bytes(path)?;
    if raw.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::new(ErrorKind::UnexpectedEof, "it is empty"));
    }
    let plain = match plain(&raw) {
        Cow::Borrowed(all) if all.len() == raw.len() => raw,
        other => other.into_owned(),
    };
    String::from_utf8(plain).map_err(|e| match packed(e.as_bytes()) {
        Some((kind, with)) => Error::new(ErrorKind::InvalidData, format!("it is compressed ({kind}): unpack it first, with {with}")),
        None => Error::new(ErrorKind::InvalidData, "it is not text"),
    })
}

/// How a file was packed, and what unpacks it; by its first bytes.
pub fn packed(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const KINDS: [(&[u8], &str, &str); 6] = [
        (&[0x1f, 0x8b], "gzip", "gunzip"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "unxz"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
        (b"BZh", "bzip2", "bunzip2"),
        (b"PK\x03\x04", "zip", "unzip"),
        (b"PK\x05\x06", "zip", "unzip"),
    ];
    KINDS.iter().find(|k| bytes.starts_with(k.0)).map(|k| (k.1, k.2))
}

/// Bytes without the mark that says how a text was saved; UTF-16 with such a mark as UTF-8.
pub fn plain(bytes: &[u8]) -> Cow<'_, [u8]> {
    let wide = |f: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|c| f([c[0], c[1]])).collect();
        Cow::Owned(String::from_utf16_lossy(&units).into_bytes())
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        all => Cow::Borrowed(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_however_it_was_saved() {
        let said = "{\"µ\": 1}\r\n";
        let wide = |f: fn(u16) -> [u8; 2]| said.encode_utf16().flat_map(f).collect::<Vec<u8>>();
        let dir = tempfile::tempdir().unwrap();
        for (mark, body) in [
            (&[][..], said.as_bytes().to_vec()),
            (&[0xef, 0xbb, 0xbf], said.as_bytes().to_vec()),
            (&[0xff, 0xfe], wide(u16::to_le_bytes)),
            (&[0xfe, 0xff], wide(u16::to_be_bytes)),
        ] {
            let path = dir.path().join("x");
            std::fs::write(&path, [mark, &body].concat()).unwrap();
            assert_eq!(text(&path).unwrap(), said, "{mark:?}");
        }
        std::fs::write(dir.path().join("y"), [b'{', 0xff, 0xfe, b'}']).unwrap();
        assert_eq!(text(&dir.path().join("y")).unwrap_err().kind(), ErrorKind::InvalidData);
        std::fs::write(dir.path().join("z"), [0x1f, 0x8b, 8, 0, 0xff]).unwrap();
        assert_eq!(text(&dir.path().join("z")).unwrap_err().to_string(), "it is compressed (gzip): unpack it first, with gunzip");
    }

    #[test]
    fn what_is_no_file_or_empty_is_said() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x"), " \n").unwrap();
        assert_eq!(text(&dir.path().join("x")).unwrap_err().to_string(), "it is empty");
        assert!(bytes("sim:toshiba-emmc".as_ref()).unwrap_err().to_string().ends_with("nandscope probe sim:toshiba-emmc --json card.json"));
        assert_eq!((name("-".as_ref()), name("./-".as_ref())), ("standard input".into(), "./-".into()));
    }

    #[test]
    fn what_never_ends_is_refused() {
        assert_eq!(all(std::io::repeat(0), 5000).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(all(&[7; 5000][..], 5000).unwrap().len(), 5000);
    }
}
