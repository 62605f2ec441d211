//! Faults of the observer that tests ask for by a word in the stream. Not in a release: see the feature
//! `fault-injection`.

use std::sync::Mutex;

use memchr::memmem;

/// While a test holds this, an observer that meets `spectap-stall` waits.
pub static STALL: Mutex<()> = Mutex::new(());

/// Panics at `spectap-fault`, and waits for [`STALL`] at `spectap-stall`.
pub(super) fn happen(bytes: &[u8]) {
    assert!(
        memmem::find(bytes, b"spectap-fault").is_none(),
        "a fault was asked for"
    );
    if memmem::find(bytes, b"spectap-stall").is_some() {
        drop(STALL.lock());
    }
}
