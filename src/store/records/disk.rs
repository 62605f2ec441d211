//! The file on the disk: opened for its owner only, appended to in whole lines, moved aside when it is full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::reading::{Line, read_line};
use super::{OpenError, RecordsSettings};

/// Prompts are not in it, yet who asked when is nobody else's business.
const OWNER_ONLY: u32 = 0o600;

/// Bytes read at once while the end of the last whole line is looked for.
const PIECE: u64 = 64 << 10;

/// Longest first line that is looked at to tell whether a file holds records.
const LONGEST_HEAD: u64 = 1 << 20;

/// The records file and the older ones beside it.
pub(super) struct Disk {
    path: PathBuf,
    max_bytes: u64,
    keep: usize,
    /// The manifest line.
    head: Vec<u8>,
    /// This tap has not written its manifest yet: a file that was there has another's.
    head_is_due: bool,
    open: Option<Open>,
}

struct Open {
    file: File,
    /// Device and inode: whether the path still leads here.
    identity: (u64, u64),
    /// Length of the whole lines.
    size: u64,
    /// Whether something was written since it was last put on the disk.
    is_dirty: bool,
}

impl Disk {
    pub(super) fn new(settings: &RecordsSettings, head: Vec<u8>) -> Self {
        Self {
            path: settings.path.clone(),
            max_bytes: settings.max_bytes,
            keep: settings.keep,
            head,
            head_is_due: true,
            open: None,
        }
    }

    /// Opens the file for the first time, and looks that it is not somebody else's.
    pub(super) fn open_first(&mut self) -> Result<(), OpenError> {
        let mut opened = open(&self.path)?;
        opened.take_over()?;
        self.open = Some(opened);
        Ok(())
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a line of this length needs a new file, when so many bytes of lines go before it.
    pub(super) fn is_full_for(&self, before: usize, line: usize) -> bool {
        let head = self.head.len() as u64;
        let size = self.open.as_ref().map_or(0, |open| open.size).max(head) + before as u64;
        // A file holds its manifest and one line at least, however small the limit is.
        size > head && size.saturating_add(line as u64) > self.max_bytes
    }

    /// Appends whole lines: all of them or none.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let result = self.try_append(lines);
        if result.is_err() {
            // Opened anew with the next lines, and what is torn is cut off then.
            self.open = None;
        }
        result
    }

    fn try_append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self
            .open
            .as_ref()
            .is_some_and(|open| !leads_to(&self.path, open.identity))
        {
            self.open = None;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let mut opened = open(&self.path)?;
                // Somebody may have put a file of another kind there meanwhile.
                opened.take_over().map_err(io::Error::other)?;
                none.insert(opened)
            }
        };
        if self.head_is_due || open.size == 0 {
            open.append(&self.head)?;
            self.head_is_due = false;
        }
        open.append(lines)
    }

    /// Moves the full file aside; the next line begins a new one.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        for number in (1..self.keep).rev() {
            match fs::rename(self.older(number), self.older(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.older(1))
    }

    fn older(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    /// Whether there are lines that the system may not have put on the disk.
    pub(super) fn is_dirty(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_dirty)
    }

    /// Puts what was written on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match &mut self.open {
            Some(open) if open.is_dirty => {
                open.is_dirty = false;
                open.file.sync_data()
            }
            _ => Ok(()),
        }
    }
}

impl Open {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_dirty = true;
        if let Err(error) = self.file.write_all(bytes) {
            // What went out of a line gives its room back; if it can't, the next opening cuts it.
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Makes the file ready for more lines, if it is a records file.
    fn take_over(&mut self) -> Result<(), OpenError> {
        if self.size > 0 && !begins_with_manifest(&mut self.file)? {
            return Err(OpenError::NotRecords);
        }
        Ok(self.cut_torn_line()?)
    }

    /// Cuts off a last line that has no end: whoever wrote it was stopped in the middle.
    fn cut_torn_line(&mut self) -> io::Result<()> {
        let whole = whole_lines(&mut self.file, self.size)?;
        if whole < self.size {
            self.file.set_len(whole)?;
            self.size = whole;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<Open> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(OWNER_ONLY)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ));
    }
    Ok(Open {
        identity: (metadata.dev(), metadata.ino()),
        size: metadata.len(),
        is_dirty: false,
        file,
    })
}

/// Somebody may have moved the file away, as log rotators do, or removed it.
fn leads_to(path: &Path, identity: (u64, u64)) -> bool {
    fs::metadata(path).is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == identity)
}

fn begins_with_manifest(file: &mut File) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut line = Vec::new();
    BufReader::new(file.take(LONGEST_HEAD)).read_until(b'\n', &mut line)?;
    Ok(matches!(read_line(&line), Ok(Line::Head(_))))
}

/// Length of a file up to the end of its last whole line.
fn whole_lines(file: &mut File, size: u64) -> io::Result<u64> {
    let mut end = size;
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        file.seek(SeekFrom::Start(start))?;
        piece.clear();
        file.take(end - start).read_to_end(&mut piece)?;
        if let Some(at) = memchr::memrchr(b'\n', &piece) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
