use super::*;

fn spec() -> MemorySpec {
    MemorySpec { threads: 2, array_bytes: 1 << 20, kernel_ns: 1_000_000, stores: Stores::Both }
}

#[test]
fn arrays_that_do_not_fit_are_refused_with_the_key() {
    let spec = MemorySpec { array_bytes: 1 << 41, ..spec() };
    let error = Memory::new(&spec, &mut Vec::new()).err().unwrap().to_string();
    assert!(error.contains("array=2 TiB"), "{error}");
}

#[test]
fn arrays_are_four_times_the_cache_or_that_is_said() {
    let mut notes = Vec::new();
    let chosen = array_bytes(&MemorySpec::default(), &mut notes).unwrap();
    let cache = last_level_cache_bytes().unwrap_or(USUAL_CACHE_BYTES);
    assert!(
        chosen == 4 * cache || notes.iter().any(|note| note.contains("smaller than 4 times")),
        "{notes:?}"
    );
    let mut notes = Vec::new();
    array_bytes(&spec(), &mut notes).unwrap();
    assert!(notes.iter().any(|note| note.contains("smaller than 4 times")), "{notes:?}");
}

#[test]
fn many_rounds_neither_overflow_nor_vanish() {
    let round = |values| MemoryKernel::ALL.into_iter().fold(values, |values, kernel| after(kernel, values));
    let [a, ..] = (0..100_000).fold([1.0, 2.0, 0.0], |values, _| round(values));
    assert!((0.5..2.0).contains(&a), "{a}");
}

#[test]
fn a_value_that_memory_got_wrong_is_found() {
    let mut memory = Memory::new(&spec(), &mut Vec::new()).unwrap();
    memory.arrays.parts().next().unwrap().b[77] = 3.0;
    assert_eq!(memory.arrays.wrong_elements(memory.expected).unwrap(), 1);
}
