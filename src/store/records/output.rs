//! Where lines go: a file on the disk, or standard output for whatever collects logs.

use std::io::{self, Write};
use std::path::PathBuf;

use super::disk::Disk;
use super::{OpenError, RecordsSettings};

/// The path that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// The way that lines take.
pub(super) enum Output {
    Disk(Disk),
    Stream(Stream),
}

impl Output {
    /// Opens what the settings name; `head` is the manifest line.
    pub(super) fn open(settings: &RecordsSettings, head: Vec<u8>) -> Result<Self, OpenError> {
        if settings.path.as_os_str() == STANDARD_OUTPUT {
            let stream = Stream::new(Box::new(io::stdout()), head);
            return Ok(Self::Stream(stream));
        }
        let mut disk = Disk::new(settings, head);
        disk.open_first()?;
        Ok(Self::Disk(disk))
    }

    /// What it is called.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::Disk(disk) => disk.path().to_owned(),
            Self::Stream(_) => "standard output".into(),
        }
    }

    /// Whether a line of this length needs a new file, when so many bytes of lines go before it.
    pub(super) fn is_full_for(&self, before: usize, line: usize) -> bool {
        match self {
            Self::Disk(disk) => disk.is_full_for(before, line),
            Self::Stream(_) => false,
        }
    }

    /// Appends whole lines.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Disk(disk) => disk.append(lines),
            Self::Stream(stream) => stream.append(lines),
        }
    }

    /// Moves the full file aside.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        match self {
            Self::Disk(disk) => disk.rotate(),
            Self::Stream(_) => Ok(()),
        }
    }

    /// Whether there are lines that the system may not have put on the disk.
    pub(super) fn is_dirty(&self) -> bool {
        matches!(self, Self::Disk(disk) if disk.is_dirty())
    }

    /// Puts what was written on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match self {
            Self::Disk(disk) => disk.sync(),
            Self::Stream(_) => Ok(()),
        }
    }
}

/// A stream that takes lines and gives none back.
pub(super) struct Stream {
    out: Box<dyn Write + Send>,
    /// What has to go before the next lines: the manifest, or the end of a line that was torn.
    before: Vec<u8>,
}

impl Stream {
    fn new(out: Box<dyn Write + Send>, head: Vec<u8>) -> Self {
        Self { out, before: head }
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.before);
        all.extend_from_slice(lines);
        let result = self.out.write_all(&all).and_then(|()| self.out.flush());
        if result.is_err() {
            // How much of it went out is not known; the next line must stand alone.
            self.before = b"\n".to_vec();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Takes so many bytes, fails once, and then takes all.
    struct Pipe {
        room: Option<usize>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.room.unwrap_or(usize::MAX).min(bytes.len());
            if room == 0 {
                self.room = None;
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.room = self.room.map(|left| left - room);
            self.taken.lock().unwrap().extend(&bytes[..room]);
            Ok(room)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_manifest_goes_first_and_a_torn_line_is_ended_before_the_next() {
        let taken = Arc::default();
        let pipe = Pipe {
            room: Some(9),
            taken: Arc::clone(&taken),
        };
        let mut stream = Stream::new(Box::new(pipe), b"head\n".to_vec());
        stream.append(b"").unwrap();
        assert!(stream.append(b"torn in two\n").is_err());
        stream.append(b"whole\n").unwrap();
        assert_eq!(*taken.lock().unwrap(), b"head\ntorn\nwhole\n");
    }
}
