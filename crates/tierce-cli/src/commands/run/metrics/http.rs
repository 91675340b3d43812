//! As much of HTTP as fetching metrics takes: `GET /metrics`, one answer, the end.

use anyhow::Result;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A request that is longer is refused.
const REQUEST_MAX: usize = 8 << 10;
/// Who is slower is hung up on.
const PATIENCE: Duration = Duration::from_secs(2);

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answer one client after the other, for ever. `metrics`: the text of now.
pub fn serve(listener: &TcpListener, metrics: &dyn Fn() -> Result<String>) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => _ = answer(stream, metrics), // who hangs up hears nothing
            Err(_) => std::thread::sleep(Duration::from_millis(100)), // no descriptors left, perhaps
        }
    }
}

fn answer(mut stream: TcpStream, metrics: &dyn Fn() -> Result<String>) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (status, kind, body) = match read(&mut stream)? {
        None => ("400 Bad Request", "text/plain", "not a request\n".to_string()),
        Some((method, _)) if method != "GET" => ("405 Method Not Allowed", "text/plain", "GET only\n".into()),
        Some((_, path)) if path == "/metrics" => match metrics() {
            Ok(text) => ("200 OK", TYPE, text),
            Err(error) => ("503 Service Unavailable", "text/plain", format!("{error:#}\n")),
        },
        Some(_) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// Method and path of a request, once all of its head is there.
fn read(stream: &mut TcpStream) -> std::io::Result<Option<(String, String)>> {
    let (begun, mut head, mut block) = (Instant::now(), Vec::new(), [0; 1024]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if head.len() > REQUEST_MAX || left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut block)? {
            0 => return Ok(None),
            length => head.extend_from_slice(&block[..length]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next().unwrap_or_default());
    let path = path.map(|path| path.split('?').next().unwrap_or_default().to_string());
    Ok(method.map(str::to_string).zip(path).filter(|_| version.starts_with("HTTP/1.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: std::net::SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(request); // who is too slow is hung up on
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text); // who says too much may be cut off
        text
    }

    #[test]
    fn metrics_are_served_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener, &|| Ok("# EOF\n".into())));
        // This thread may be slower than the server's patience is long, but not again and again.
        let says = |request: &[u8], status: &str| {
            let mut all = (0..5).map(|_| ask(address, request));
            all.find(|text| text.lines().next() == Some(status)).unwrap_or_else(|| panic!("never {status}"))
        };
        let got = says(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK");
        assert!(got.contains("Content-Length: 6\r\n") && got.ends_with("\r\n\r\n# EOF\n"), "{got}");
        for (request, status) in [
            (&b"GET /metrics?x=1 HTTP/1.0\r\n\r\n"[..], "200 OK"),
            (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            (b"GET /metrics\r\n\r\n", "400 Bad Request"),
            (b"\xff\x00\r\n\r\n", "400 Bad Request"),
        ] {
            says(request, &format!("HTTP/1.1 {status}"));
        }
        // Who says nothing, or too much, is hung up on, and the next one is served.
        drop(TcpStream::connect(address).unwrap());
        ask(address, &[b'x'; 3 * REQUEST_MAX]);
        says(b"GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK");
    }
}
