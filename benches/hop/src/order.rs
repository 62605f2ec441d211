//! What a request asks the engine double to do. It travels in the header `x-bench`, which every proxy passes on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Name of the header.
pub const HEADER: &str = "x-bench";

/// What the engine double does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A stream.
    Stream {
        /// Token events of the stream.
        events: u32,
        /// Token events per write to the socket.
        batch: u32,
        /// Time between writes; zero is as fast as the socket takes them.
        interval: Duration,
    },
    /// One JSON reply.
    Unary {
        /// Size of its body in bytes.
        size: usize,
    },
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream {
                events,
                batch,
                interval,
            } => write!(f, "stream {events} {batch} {}", interval.as_micros()),
            Self::Unary { size } => write!(f, "unary {size}"),
        }
    }
}

/// The header's value is none of an order's two forms.
#[derive(Debug, PartialEq, Eq)]
pub struct NoOrder;

impl FromStr for Order {
    type Err = NoOrder;

    fn from_str(text: &str) -> Result<Self, NoOrder> {
        let mut words = text.split_ascii_whitespace();
        let kind = words.next().ok_or(NoOrder)?;
        let mut number = || {
            words
                .next()
                .and_then(|word| word.parse::<u32>().ok())
                .ok_or(NoOrder)
        };
        match kind {
            "stream" => Ok(Self::Stream {
                events: number()?.max(1),
                batch: number()?.max(1),
                interval: Duration::from_micros(number()?.into()),
            }),
            "unary" => Ok(Self::Unary {
                size: number()? as usize,
            }),
            _ => Err(NoOrder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        for order in [
            Order::Stream {
                events: 100,
                batch: 32,
                interval: Duration::from_millis(20),
            },
            Order::Unary { size: 2048 },
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert_eq!("unary".parse::<Order>(), Err(NoOrder));
        assert_eq!("stream 1 x 3".parse::<Order>(), Err(NoOrder));
    }
}
