//! Random traffic with random faults through a real process, in front of all simulated engines. At the end every request
//! is accounted for, nothing has leaked, and the numbers are those that the engines sent.
//!
//! It runs for 20 s, or for `SOAK_MINUTES`; `SOAK_SEED` repeats what was drawn.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on fails"
)]

mod account;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../process/program.rs"]
mod program;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../faults/relay.rs"]
mod relay;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../wire/support/mod.rs"]
mod support;
mod traffic;
mod vitals;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use spectap::simulate::{Acceptance, Engine, EngineKind, Model, Running, Settings};

use account::Books;
use program::spectap;
use relay::{After, Fault, FaultProxy, Kind, Way};
use traffic::{Client, Sent};
use vitals::Vitals;

const SHORT: Duration = Duration::from_secs(20);
const CLIENTS: u64 = 12;
const ENGINES: [EngineKind; 4] = [
    EngineKind::Vllm,
    EngineKind::TensorrtLlm,
    EngineKind::Sglang,
    EngineKind::LlamaCpp,
];

/// Share of the connections to engines that have a fault, in percent.
const FAULTY: u8 = 40;

fn duration() -> Duration {
    match std::env::var("SOAK_MINUTES") {
        Ok(minutes) => Duration::from_secs_f64(60.0 * minutes.parse::<f64>().unwrap()),
        Err(_) => SHORT,
    }
}

fn seed() -> u64 {
    std::env::var("SOAK_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap())
}

async fn engine(kind: EngineKind, seed: u64) -> Running {
    let acceptance = Acceptance::parse("0.8,0.7,0.6,0.5").unwrap();
    let settings = Settings {
        seed,
        prefill_time: Duration::from_millis(3),
        step_time: Duration::from_millis(1),
        ..Settings::new(kind, vec![Model::new("m", acceptance)])
    };
    Engine::start(settings).await.unwrap()
}

/// A way to an engine on which connections break, stall and drip.
fn faulty(engine: SocketAddr, seed: u64) -> FaultProxy {
    FaultProxy::start(engine, move |number| {
        let mut rng = Rng::with_seed(seed ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // About what a request, or an answer, takes.
        let (way, most) = *rng
            .choice(&[(Way::Up, 3_000), (Way::Down, 12_000)])
            .unwrap();
        (rng.u8(..100) < FAULTY).then(|| Fault {
            way,
            after: After::Bytes(rng.usize(..most)),
            kind: *rng
                .choice(&[Kind::Delay, Kind::Stall, Kind::Cut, Kind::Reset, Kind::Drip])
                .unwrap(),
            waits: false,
        })
    })
}

#[test]
fn under_faults_every_request_is_accounted_for_and_nothing_leaks() {
    let (seed, duration) = (seed(), duration());
    eprintln!("SOAK_SEED={seed}, {duration:?}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let engines: Vec<Running> = ENGINES
        .into_iter()
        .zip(1..)
        .map(|(kind, number)| runtime.block_on(engine(kind, seed.wrapping_add(number))))
        .collect();
    let ways: Vec<FaultProxy> = engines
        .iter()
        .zip(1..)
        .map(|(engine, number)| faulty(engine.address, seed.rotate_left(number)))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");

    let lanes: Vec<String> = ways[1..]
        .iter()
        .map(|way| format!("--lane=127.0.0.1:0=http://{}", way.address))
        .collect();
    let upstream = format!("--upstream=http://{}", ways[0].address);
    let records_flag = format!("--records={}", records.display());
    let mut flags = vec![
        "serve",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
        "--workers=2",
        "--idle-timeout=1s",
        "--response-head-timeout=1s",
        "--records-max-bytes=64GiB",
        &upstream,
        &records_flag,
    ];
    flags.extend(lanes.iter().map(String::as_str));
    let (tap, _, admin) = program::Running::start_serving(&mut spectap(&flags));
    let data: Vec<SocketAddr> = ways
        .iter()
        .map(|way| address_before(&tap, way.address))
        .collect();
    let mut vitals = Vitals::begin(tap.id(), admin);

    let (begun, numbers) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (data, numbers) = (data.clone(), Arc::clone(&numbers));
            let rng = Rng::with_seed(seed.wrapping_mul(31).wrapping_add(client));
            std::thread::spawn(move || {
                let mut client = Client::new(data, rng);
                let mut sent = Vec::new();
                while begun.elapsed() < duration {
                    sent.push(client.ask(numbers.fetch_add(1, Ordering::Relaxed)));
                }
                sent
            })
        })
        .collect();
    while begun.elapsed() < duration {
        // Forty looks over the whole time.
        std::thread::sleep(duration / 40);
        vitals.look();
    }
    let sent: Vec<Sent> = clients
        .into_iter()
        .flat_map(|client| client.join().unwrap())
        .collect();

    vitals.settle(sent.len());
    let counters = vitals::metrics(admin);
    let broken: usize = ways.iter().map(FaultProxy::reached).sum();
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(0));
    let logs = engines.iter().map(|engine| engine.log.entries()).collect();
    let books = Books::open(&records, &data, logs);
    let told = books.balance(&sent, &counters);
    eprintln!(
        "{} requests, {broken} faults of engines; {told}; {vitals}",
        sent.len()
    );
    assert!(broken > 0 && sent.len() > 50, "too little happened");
}

/// The data address of the lane to this engine.
fn address_before(tap: &program::Running, engine: SocketAddr) -> SocketAddr {
    let mark = format!(" passes to http://{engine}");
    tap.until(&mark, |line| {
        let (before, _) = line.split_once(&mark)?;
        before.rsplit("http://").next()?.parse().ok()
    })
}
