//! Names that window managers and applications agree on (EWMH, ICCCM).

x11rb::atom_manager! {
    /// Their numbers at this X server.
    pub(crate) Atoms: AtomsCookie {
        WM_PROTOCOLS, WM_STATE, _NET_WM_PING, _NET_CLIENT_LIST, _NET_WM_NAME, _NET_SUPPORTING_WM_CHECK, _NET_WM_STATE,
        _NET_WM_STATE_HIDDEN, _NET_ACTIVE_WINDOW, _NET_WM_WINDOW_TYPE, _NET_WM_WINDOW_TYPE_DOCK, _NET_WM_STRUT,
        _NET_WM_STRUT_PARTIAL,
    }
}
