//! Millrace's port through the library for C: with copies, and with frames that are lent.

use crate::peers::{End, Peer};
use crate::protocol::{Pin, Scenario, Wait};
use std::ffi::{c_char, c_void};

const DONE: i32 = 1;
const PATIENCE_MS: i32 = 20_000;
/// For as long as a run lasts: who is to spin never sleeps.
const SPIN_US: u32 = 60_000_000;
const FRAME_HEADER_SIZE: usize = 16;

#[repr(C)]
struct Channel {
    writer: u32,
    reader: u32,
    capacity: u32,
    label: u32,
    start: u32,
    kind: u32,
    name: *const c_char,
}

#[repr(C)]
struct Message {
    payload: *const u8,
    size: usize,
    total: u64,
    tag: u32,
    kind: u8,
    codec: u8,
    flags: u8,
    reserved: u8,
}

impl Message {
    const NONE: Message = Message {
        payload: std::ptr::null(),
        size: 0,
        total: 0,
        tag: 0,
        kind: 0,
        codec: 0,
        flags: 0,
        reserved: 0,
    };
}

unsafe extern "C" {
    fn millrace_memory_size(endpoints: u32, channels: *const Channel, count: u32) -> u32;
    fn millrace_segment_size() -> usize;
    fn millrace_segment_create(
        segment: *mut c_void,
        memory: *mut c_void,
        memory_size: usize,
        endpoint_count: u32,
        channels: *const Channel,
        channel_count: u32,
        timeout_ms: i32,
    ) -> i32;
    fn millrace_segment_leave(segment: *mut c_void) -> i32;
    fn millrace_port_size() -> usize;
    fn millrace_port_attach(port: *mut c_void, segment: *mut c_void, endpoint: u32) -> i32;
    fn millrace_port_set_spin(port: *mut c_void, microseconds: u32) -> i32;
    fn millrace_port_write(
        port: *mut c_void,
        payload: *const u8,
        size: usize,
        codec: u32,
        tag: u32,
        timeout_ms: i32,
    ) -> i32;
    fn millrace_port_read(
        port: *mut c_void,
        storage: *mut u8,
        capacity: usize,
        timeout_ms: i32,
        message: *mut Message,
    ) -> i32;
    fn millrace_port_claim(
        port: *mut c_void,
        size: u32,
        timeout_ms: i32,
        place: *mut *mut u8,
    ) -> i32;
    fn millrace_port_publish(port: *mut c_void, size: u32, codec: u32, tag: u32) -> i32;
    fn millrace_port_peek(port: *mut c_void, timeout_ms: i32, message: *mut Message) -> i32;
    fn millrace_port_release(port: *mut c_void) -> i32;
    fn millrace_port_leave(port: *mut c_void) -> i32;
}

fn check(status: i32, what: &str) -> Result<(), String> {
    if status == DONE {
        Ok(())
    } else {
        Err(format!("libmillrace answers {status} to {what}"))
    }
}

#[inline(always)]
fn sure(status: i32) {
    assert_eq!(status, DONE, "libmillrace");
}

/// Storage at a multiple of 128, which must be given back as it was taken.
struct Storage {
    address: *mut u8,
    layout: std::alloc::Layout,
}

impl Storage {
    fn new(size: usize) -> Storage {
        let layout = std::alloc::Layout::from_size_align(size, 128).expect("a small size");
        // SAFETY: the size is not 0.
        let address = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!address.is_null());
        Storage { address, layout }
    }

    fn at(&self) -> *mut c_void {
        self.address.cast()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: taken with the same layout, and nothing uses it any more.
        unsafe { std::alloc::dealloc(self.address, self.layout) }
    }
}

/// One port, and what it must not outlive.
struct Port {
    port: Storage,
    segment: Storage,
    _memory: std::sync::Arc<Memory>,
}

struct Memory(Storage);

// SAFETY: the memory is made to be shared, and a port belongs to whoever has it.
unsafe impl Send for Memory {}
unsafe impl Sync for Memory {}
unsafe impl Send for Port {}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: both are objects, and the port goes first.
        unsafe {
            millrace_port_leave(self.port.at());
            millrace_segment_leave(self.segment.at());
        }
    }
}

/// The power of two in which at most `window` messages are under way.
fn capacity_of(size: usize, window: usize) -> u32 {
    let extent = (size + FRAME_HEADER_SIZE).next_multiple_of(16);
    let wanted = (extent * window).clamp(4_096, 1 << 20);
    1 << wanted.ilog2()
}

fn open_pair(size: usize, scenario: &Scenario) -> Result<(Port, Port), String> {
    if scenario.pin == Pin::OneCore && scenario.wait == Wait::Spin {
        return Err("two that spin on one core wait for the scheduler".into());
    }
    let capacity = capacity_of(size, scenario.window());
    let channels = [(0, 1), (1, 0)].map(|(writer, reader)| Channel {
        writer,
        reader,
        capacity,
        label: 0,
        start: 0,
        kind: 0,
        name: std::ptr::null(),
    });
    // SAFETY: the channels are two, and the objects have the sizes that the library asks for.
    unsafe {
        let memory_size = millrace_memory_size(2, channels.as_ptr(), 2) as usize;
        let memory = std::sync::Arc::new(Memory(Storage::new(memory_size)));
        let mut ports = [0, 1].map(|side| {
            let segment = Storage::new(millrace_segment_size());
            let port = Storage::new(millrace_port_size());
            let (at, list) = (memory.0.at(), channels.as_ptr());
            let made =
                millrace_segment_create(segment.at(), at, memory_size, 2, list, 2, PATIENCE_MS);
            check(made, "create")?;
            check(
                millrace_port_attach(port.at(), segment.at(), side),
                "attach",
            )?;
            let spin_us = if scenario.wait == Wait::Spin {
                SPIN_US
            } else {
                0
            };
            check(millrace_port_set_spin(port.at(), spin_us), "set_spin")?;
            Ok::<_, String>(Some(Port {
                port,
                segment,
                _memory: memory.clone(),
            }))
        });
        let mut take = |side: usize| -> Result<Port, String> {
            Ok(std::mem::replace(&mut ports[side], Ok(None))?.expect("taken once"))
        };
        Ok((take(0)?, take(1)?))
    }
}

pub struct Copying;

pub struct CopyingEnd<const N: usize> {
    port: Port,
    storage: Box<[u8; N]>,
}

impl<const N: usize> Peer<N> for Copying {
    type End = CopyingEnd<N>;

    fn open(scenario: &Scenario) -> Result<(Self::End, Self::End), String> {
        let (a, b) = open_pair(N, scenario)?;
        Ok((
            CopyingEnd {
                port: a,
                storage: Box::new([0; N]),
            },
            CopyingEnd {
                port: b,
                storage: Box::new([0; N]),
            },
        ))
    }
}

impl<const N: usize> End for CopyingEnd<N> {
    #[inline(always)]
    fn send(&mut self, make: impl FnOnce(&mut [u8])) {
        let mut payload = [0; N];
        make(&mut payload);
        // SAFETY: the port is an object, and the payload lives until the call returns.
        sure(unsafe {
            millrace_port_write(self.port.port.at(), payload.as_ptr(), N, 0, 0, PATIENCE_MS)
        });
    }

    #[inline(always)]
    fn take<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> R {
        let mut message = Message::NONE;
        let storage = self.storage.as_mut_ptr();
        // SAFETY: the storage has N bytes, and the payload lies in it.
        unsafe {
            sure(millrace_port_read(
                self.port.port.at(),
                storage,
                N,
                PATIENCE_MS,
                &mut message,
            ));
            see(std::slice::from_raw_parts(message.payload, message.size))
        }
    }
}

pub struct Lending;

pub struct LendingEnd<const N: usize> {
    port: Port,
}

impl<const N: usize> Peer<N> for Lending {
    type End = LendingEnd<N>;

    fn open(scenario: &Scenario) -> Result<(Self::End, Self::End), String> {
        let (a, b) = open_pair(N, scenario)?;
        Ok((LendingEnd { port: a }, LendingEnd { port: b }))
    }
}

impl<const N: usize> End for LendingEnd<N> {
    #[inline(always)]
    fn send(&mut self, make: impl FnOnce(&mut [u8])) {
        let mut place = std::ptr::null_mut();
        // SAFETY: the place has N bytes, until it is published.
        unsafe {
            sure(millrace_port_claim(
                self.port.port.at(),
                N as u32,
                PATIENCE_MS,
                &mut place,
            ));
            make(std::slice::from_raw_parts_mut(place, N));
            sure(millrace_port_publish(self.port.port.at(), N as u32, 0, 0));
        }
    }

    #[inline(always)]
    fn take<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> R {
        let mut message = Message::NONE;
        // SAFETY: the payload is ours until it is released.
        unsafe {
            sure(millrace_port_peek(
                self.port.port.at(),
                PATIENCE_MS,
                &mut message,
            ));
            let seen = see(std::slice::from_raw_parts(message.payload, message.size));
            sure(millrace_port_release(self.port.port.at()));
            seen
        }
    }
}
