//! Micro-benchmarks of the observer.
fn main() {
    divan::main()
}
