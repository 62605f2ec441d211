//! When the tap gets to know of bytes and of the end: not before they are out.

use super::*;
use crate::tap::End;
use crate::tap::stand_in::StandIn;

#[test]
fn bytes_and_the_end_wait_for_the_flush() {
    let (tap, outlet) = (StandIn::default(), Arc::new(Outlet::default()));
    outlet.begin(Box::new(tap.exchange()));
    outlet.passed(Bytes::from_static(b"data"), None, Instant::now());
    assert_eq!(outlet.state().waiting.len(), 1);
    outlet.end(End::Complete, true);
    assert_eq!(tap.observations(), 0);
    outlet.flushed();
    assert_eq!(
        (outlet.state().waiting.len(), tap.observations()),
        (0, 1),
        "the flush tells"
    );
}

#[test]
fn an_end_without_a_flush_and_a_connection_that_goes_tell_at_once() {
    let (tap, outlet) = (StandIn::default(), Arc::new(Outlet::default()));
    outlet.begin(Box::new(tap.exchange()));
    outlet.end(End::Cancelled, false);
    assert_eq!(tap.observations(), 1);
    outlet.begin(Box::new(tap.exchange()));
    outlet.end(End::Complete, true);
    drop(outlet);
    assert_eq!(tap.observations(), 2);
}

#[test]
fn what_waits_is_bounded() {
    let (tap, outlet) = (StandIn::default(), Arc::new(Outlet::default()));
    outlet.begin(Box::new(tap.exchange()));
    for _ in 0..1000 {
        outlet.passed(Bytes::from_static(b"data"), None, Instant::now());
        assert!(outlet.state().waiting.len() <= MOST_WAITING);
    }
}

#[test]
fn what_is_handed_over_later_waits_for_a_flush_of_its_own() {
    let (tap, outlet) = (StandIn::default(), Arc::new(Outlet::default()));
    let mut context = Context::from_waker(Waker::noop());
    outlet.begin(Box::new(tap.exchange()));
    outlet.passed(Bytes::from_static(b"held"), None, Instant::now());
    outlet.flushed();
    assert!(outlet.poll_flushed(&mut context).is_ready());
    outlet.handed_over();
    assert!(outlet.poll_flushed(&mut context).is_pending());
    outlet.flushed();
    assert!(outlet.poll_flushed(&mut context).is_ready());
}
