//! What the messages hold: every byte follows from the number of the message, so that the reader
//! can check each of them, at the same cost whatever brought it.

const LANES: usize = 8;
const BLOCK: usize = 8 * LANES;
// Odd, with their bits spread: the words of two messages differ everywhere.
const NUMBER_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const WORD_STEP: u64 = 0xc2b2_ae3d_27d4_eb4f;

#[inline(always)]
fn block_at(number: u64, index: usize) -> [u64; LANES] {
    let seed = number.wrapping_mul(NUMBER_STEP);
    let base = seed.wrapping_add((index as u64).wrapping_mul(WORD_STEP.wrapping_mul(LANES as u64)));
    std::array::from_fn(|lane| base.wrapping_add((lane as u64).wrapping_mul(WORD_STEP)))
}

#[inline(always)]
fn bytes_of(block: [u64; LANES]) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    for (place, word) in bytes.chunks_exact_mut(8).zip(block) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Fills the payload of the message with this number.
#[inline(always)]
pub fn fill(payload: &mut [u8], number: u64) {
    for (index, place) in payload.chunks_mut(BLOCK).enumerate() {
        place.copy_from_slice(&bytes_of(block_at(number, index))[..place.len()]);
    }
}

/// Whether every byte is the one that `fill` wrote.
#[inline(always)]
pub fn matches(payload: &[u8], number: u64) -> bool {
    let mut differ = 0;
    let whole = payload.chunks_exact(BLOCK);
    let rest = whole.remainder();
    let count = payload.len() / BLOCK;
    for (index, place) in whole.enumerate() {
        let block = block_at(number, index);
        for (word, bytes) in block.iter().zip(place.chunks_exact(8)) {
            differ |= word ^ u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        }
    }
    differ == 0 && rest == &bytes_of(block_at(number, count))[..rest.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_byte_is_found_wherever_it_stands() {
        for size in [1, 8, 63, 64, 65, 118, 200] {
            let mut payload = vec![0; size];
            fill(&mut payload, 7);
            assert!(matches(&payload, 7));
            assert!(!matches(&payload, 8));
            for index in 0..size {
                payload[index] ^= 1;
                assert!(!matches(&payload, 7), "byte {index} of {size}");
                payload[index] ^= 1;
            }
        }
    }
}
