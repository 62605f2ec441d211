//! `/livez` and `/readyz`.

use std::time::Duration;

use tokio::net::TcpListener;

use crate::server::{Choice, Server, within};

async fn in_front_of(upstream: String) -> Server {
    Server::start_with(Choice {
        upstream: Some(upstream),
        ..Choice::default()
    })
    .await
}

#[tokio::test]
async fn ready_means_that_the_engine_accepts_and_it_is_never_sent_a_byte() {
    use tokio::io::AsyncReadExt;

    let engine = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = in_front_of(engine.local_addr().unwrap().to_string()).await;
    let answer = server.get("/readyz").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ready\n"));
    let (mut connection, _) = within(engine.accept()).await.unwrap();
    let mut sent = Vec::new();
    within(connection.read_to_end(&mut sent)).await.unwrap();
    assert!(sent.is_empty(), "{sent:?}");
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_named_in_one_line_and_the_process_lives() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap().to_string();
    drop(gone);
    let server = in_front_of(address.clone()).await;
    let answer = server.get("/readyz").await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.body.contains(&address), "{answer:?}");
    assert_eq!(answer.body.lines().count(), 1, "{answer:?}");
    let alive = server.get("/livez").await;
    assert_eq!((alive.status, alive.body.as_str()), (200, "alive\n"));
}

#[tokio::test]
async fn an_engine_that_comes_later_is_noticed() {
    let place = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let server = in_front_of(address.to_string()).await;
    assert_eq!(server.get("/readyz").await.status, 503);
    let _engine = TcpListener::bind(address).await.unwrap();
    within(async {
        while server.get("/readyz").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn many_probes_at_once_are_one_connection() {
    let engine = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = in_front_of(engine.local_addr().unwrap().to_string()).await;
    let readiness = server.readiness.clone();
    let probes: Vec<_> = (0..50)
        .map(|_| {
            let readiness = readiness.clone();
            tokio::spawn(async move { readiness.check().await })
        })
        .collect();
    for probe in probes {
        assert_eq!(within(probe).await.unwrap(), Ok(()));
    }
    within(engine.accept()).await.unwrap();
    let second = std::future::poll_fn(|context| {
        std::task::Poll::Ready(engine.poll_accept(context).is_ready())
    });
    assert!(!second.await, "a second connection was opened");
}

#[tokio::test]
async fn a_draining_tap_is_not_ready_at_once_even_if_the_engine_was_just_there() {
    let engine = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = in_front_of(engine.local_addr().unwrap().to_string()).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    server.readiness.start_draining();
    let answer = server.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.starts_with("draining"), "{answer:?}");
    assert_eq!(server.get("/livez").await.status, 200);
}

#[tokio::test]
async fn without_an_upstream_to_ask_the_tap_is_ready_by_itself() {
    let server = Server::start().await;
    assert_eq!(server.get("/readyz").await.status, 200);
    server.readiness.start_draining();
    assert_eq!(server.get("/readyz").await.status, 503);
}
