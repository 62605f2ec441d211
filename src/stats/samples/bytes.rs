//! Numbers as bytes: counts in as many bytes as they need, other values in eight.

/// Writes a count, seven bits to a byte, the lowest first.
pub(super) fn put_count(bytes: &mut Vec<u8>, mut count: u64) {
    while count >= 0x80 {
        bytes.push(count as u8 | 0x80);
        count >>= 7;
    }
    bytes.push(count as u8);
}

/// Writes a value.
pub(super) fn put_value(bytes: &mut Vec<u8>, value: f64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

/// Reads what was written; where the bytes end early, nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn count(&mut self) -> Option<u64> {
        let mut count = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            count |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(count);
            }
        }
        None
    }

    pub(super) fn value(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(array)
    }

    pub(super) fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(slice)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(counts in prop::collection::vec(any::<u64>(), 0..9), value in any::<f64>()) {
            let mut bytes = Vec::new();
            for &count in &counts {
                put_count(&mut bytes, count);
            }
            put_value(&mut bytes, value);
            let mut reader = Reader(&bytes);
            for count in counts {
                prop_assert_eq!(reader.count(), Some(count));
            }
            prop_assert_eq!(reader.value().map(f64::to_bits), Some(value.to_bits()));
            prop_assert_eq!(reader.byte(), None);
        }
    }
}
