//! Numbered entries for values that come and go, without allocation once it has grown to its work.

/// Values by a small number that is reused after removal.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Option<u32>,
    len: u32,
}

#[derive(Debug)]
enum Entry<T> {
    Full(T),
    Free(Option<u32>),
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: None, len: 0 }
    }

    #[allow(clippy::cast_possible_truncation)] // bounded by the requests a driver has outstanding
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(index) = self.free
            && let Entry::Free(next) = self.entries[index as usize]
        {
            self.free = next;
            self.entries[index as usize] = Entry::Full(value);
            return index;
        }
        self.entries.push(Entry::Full(value));
        self.entries.len() as u32 - 1
    }

    /// The index that the next value to be inserted gets.
    #[allow(clippy::cast_possible_truncation)] // as in `insert`
    pub(crate) fn next(&self) -> u32 {
        self.free.unwrap_or(self.entries.len() as u32)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        match self.entries.get(index as usize) {
            Some(Entry::Full(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        match self.entries.get_mut(index as usize) {
            Some(Entry::Full(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let place = self.entries.get_mut(index as usize)?;
        if matches!(place, Entry::Free(_)) {
            return None;
        }
        let Entry::Full(value) = std::mem::replace(place, Entry::Free(self.free)) else { return None };
        self.free = Some(index);
        self.len -= 1;
        Some(value)
    }

    /// [`remove`](Self::remove) for who has seen the value: nothing is moved.
    pub(crate) fn discard(&mut self, index: u32)
    where
        T: Copy,
    {
        if let Some(place @ Entry::Full(_)) = self.entries.get_mut(index as usize) {
            *place = Entry::Free(self.free);
            self.free = Some(index);
            self.len -= 1;
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free = None;
        self.len = 0;
        std::mem::take(&mut self.entries).into_iter().filter_map(|place| match place {
            Entry::Full(value) => Some(value),
            Entry::Free(_) => None,
        })
    }
}
