//! The page in a real Chromium: `tests/page/page.test.mjs`, run by node with what `make tools` installed.

use std::path::Path;
use std::process::Command;

/// Where `tests/page/install.sh` puts the packages.
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.work/page");

fn missing() -> Option<&'static str> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !runs("node") {
        Some("node is not on the PATH")
    } else if !["/usr/bin/chromium", "/usr/bin/chromium-browser"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        Some("there is no Chromium in /usr/bin")
    } else if !Path::new(PACKAGES)
        .join("node_modules/playwright-core")
        .exists()
    {
        Some("playwright-core is not installed (make tools)")
    } else {
        None
    }
}

#[test]
fn the_page_does_what_it_promises_in_a_real_browser() {
    if let Some(missing) = missing() {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "{missing}, and CI=true allows no skip"
        );
        eprintln!("skipped the_page_does_what_it_promises_in_a_real_browser: {missing}");
        return;
    }
    let output = Command::new("node")
        .args(["--test", "--test-reporter=spec", "tests/page/page.test.mjs"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("SPECTAP_PAGE_PACKAGES", PACKAGES)
        .env("SPECTAP_BINARY", env!("CARGO_BIN_EXE_spectap"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{complaints}");
}
