//! VNC Authentication (RFC 6143, section 7.2.2).

use des::Des;
use des::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// How much of a password counts, in bytes.
pub const PASSWORD_BYTES: usize = 8;

/// The answer to a challenge: DES of it in two blocks, with the password's bytes, each with its bits reversed, as the key.
#[must_use]
pub fn answer(password: &str, challenge: [u8; 16]) -> [u8; 16] {
    let mut key = [0; PASSWORD_BYTES];
    for (place, byte) in key.iter_mut().zip(password.bytes()) {
        *place = byte.reverse_bits();
    }
    let cipher = Des::new(&Array::from(key));
    let mut answer = challenge;
    for half in answer.chunks_exact_mut(8) {
        let mut block = Array::from([0; 8]);
        block.copy_from_slice(half);
        cipher.encrypt_block(&mut block);
        half.copy_from_slice(&block);
    }
    answer
}
