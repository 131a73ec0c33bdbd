//! The floor of those who frame bytes, called as a library for C is: the least that a ring of
//! frames does, with sleepers that are looked for, but never there. No state, no error, one size of
//! message, no wait that ends. What is left are a header, a copy in and out, and two
//! cursors in the one order with the wishes of sleepers.

use crate::peers::{End, Peer, spins_only};
use crate::protocol::Scenario;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const HEADER_SIZE: usize = 16;
const FRAMES: u32 = 4_096;

/// A control word, on a pair of lines of its own.
#[repr(align(128))]
struct Word(AtomicU32);

impl Word {
    const fn new() -> Word {
        Word(AtomicU32::new(0))
    }
}

/// One ring, and its frames, which begin at a line of their own.
struct Ring {
    tail: Word,
    head: Word,
    reader_wants: Word,
    writer_wants: Word,
    area: *mut u8,
    layout: std::alloc::Layout,
}

// SAFETY: one thread writes and another reads; a frame is its writer's until the tail is stored,
// and its reader's until the head is.
unsafe impl Send for Ring {}
unsafe impl Sync for Ring {}

impl Ring {
    fn new(extent: usize) -> Arc<Ring> {
        let size = FRAMES as usize * extent;
        let layout = std::alloc::Layout::from_size_align(size, 128).expect("a small size");
        // SAFETY: the size is not 0.
        let area = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!area.is_null());
        Arc::new(Ring {
            tail: Word::new(),
            head: Word::new(),
            reader_wants: Word::new(),
            writer_wants: Word::new(),
            area,
            layout,
        })
    }

    /// The frame at a cursor, which counts frames.
    fn frame(&self, cursor: u32, extent: usize) -> *mut u8 {
        // SAFETY: within the area.
        unsafe { self.area.add((cursor % FRAMES) as usize * extent) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: taken with the same layout, and nothing uses it any more.
        unsafe { std::alloc::dealloc(self.area, self.layout) }
    }
}

/// One end of two rings.
struct Port {
    outgoing: Arc<Ring>,
    incoming: Arc<Ring>,
    /// Of the ring that is written: frames published, and given back as far as seen.
    tail: u32,
    freed: u32,
    /// Of the ring that is read: frames taken, given back, and published as far as seen.
    head: u32,
    stored: u32,
    seen: u32,
    rings: u32,
}

/// Not put into its caller: a program calls a library.
#[inline(never)]
extern "C" fn write<const N: usize>(port: &mut Port, payload: &[u8; N]) -> i32 {
    let ring = &*port.outgoing;
    while port.tail.wrapping_sub(port.freed) >= FRAMES {
        port.freed = ring.head.0.load(Ordering::Acquire);
        spin_loop();
    }
    let frame = ring.frame(port.tail, HEADER_SIZE + N);
    // SAFETY: the frame is ours, and aligned to 8 at least.
    unsafe {
        frame.cast::<[u32; 4]>().write([N as u32, 0, 0, 0]);
        frame.add(HEADER_SIZE).cast::<[u8; N]>().write(*payload);
    }
    port.tail = port.tail.wrapping_add(1);
    ring.tail.0.store(port.tail, Ordering::SeqCst);
    if ring.reader_wants.0.load(Ordering::SeqCst) != 0 {
        port.rings += 1;
    }
    1
}

/// The same.
#[inline(never)]
extern "C" fn read<const N: usize>(port: &mut Port, target: &mut [u8; N]) -> i32 {
    let ring = &*port.incoming;
    while port.seen == port.head {
        port.seen = ring.tail.0.load(Ordering::Acquire);
        if port.seen == port.head {
            spin_loop();
        }
    }
    let frame = ring.frame(port.head, HEADER_SIZE + N);
    // SAFETY: the frame is ours, and aligned to 8 at least.
    unsafe {
        if frame.cast::<u32>().read() != N as u32 {
            return 0;
        }
        *target = frame.add(HEADER_SIZE).cast::<[u8; N]>().read();
    }
    port.head = port.head.wrapping_add(1);
    if port.head == port.seen || port.head.wrapping_sub(port.stored) >= FRAMES / 4 {
        port.stored = port.head;
        ring.head.0.store(port.head, Ordering::SeqCst);
        if ring.writer_wants.0.load(Ordering::SeqCst) != 0 {
            port.rings += 1;
        }
    }
    1
}

pub struct Frames;

pub struct FrameEnd<const N: usize> {
    port: Port,
    source: [u8; N],
    target: [u8; N],
}

impl<const N: usize> FrameEnd<N> {
    fn new(outgoing: &Arc<Ring>, incoming: &Arc<Ring>) -> FrameEnd<N> {
        FrameEnd {
            port: Port {
                outgoing: outgoing.clone(),
                incoming: incoming.clone(),
                tail: 0,
                freed: 0,
                head: 0,
                stored: 0,
                seen: 0,
                rings: 0,
            },
            source: [0; N],
            target: [0; N],
        }
    }
}

impl<const N: usize> Peer<N> for Frames {
    type End = FrameEnd<N>;

    fn open(scenario: &Scenario) -> Result<(Self::End, Self::End), String> {
        spins_only(scenario)?;
        if N > 256 {
            return Err("short frames".into());
        }
        let (there, back) = (Ring::new(HEADER_SIZE + N), Ring::new(HEADER_SIZE + N));
        Ok((FrameEnd::new(&there, &back), FrameEnd::new(&back, &there)))
    }
}

impl<const N: usize> End for FrameEnd<N> {
    #[inline(always)]
    fn send(&mut self, make: impl FnOnce(&mut [u8])) {
        make(&mut self.source);
        assert_eq!(write(&mut self.port, &self.source), 1);
    }

    #[inline(always)]
    fn take<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> R {
        let status = read(&mut self.port, &mut self.target);
        assert_eq!(status, 1, "a frame has another size than was sent");
        see(&self.target)
    }
}
