//! The cost of a call inside a running host, each figure alternating with its baseline.
//!
//! ```console
//! $ cargo bench --bench calls             # all figures
//! $ cargo bench --bench calls -- P12 P16  # these
//! ```
//!
//! Rounds go A B A B …; a line shows the medians of the rounds and the median of their ratios.
//! Needs a C compiler (for the null server), and Python for P16.
//!
//! | figure | what | compared with |
//! |---|---|---|
//! | P8 | calls of the null server through the host, 1 and 10 in flight, records on | the same requests written by hand to the same kind of pipe |
//! | P12 | a call of a built-in function with all records on | the same with all records off |
//! | P15 | writes to a memory store, and to a disk store, 8 in flight | P8's rate; appends with `fsync` |
//! | P16 | a warm call of a Python function; of an HTTP tool | the function alone; plain reqwest |
//! | P18 | calls of the null server with its wire traced | the same without tracing |

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a benchmark prints, reads the clock, and stops at a fault"
)]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhost::{
    AssemblyOptions, CallArguments, CallRequest, Environment, FixedEnvironment, FrontEnd,
    LoadRequest, ProcessEnvironment, ToolHost, TrafficSink,
};

/// How often each side of a pair is measured.
const ROUNDS: usize = 7;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|w| w.starts_with('P')).collect();
    let wanted = |figure: &str| words.is_empty() || words.iter().any(|word| word == figure);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let bench = Bench { dir: scratch.path().to_path_buf() };
    runtime.block_on(async {
        if wanted("P8") {
            bench.wire().await;
        }
        if wanted("P12") {
            bench.records().await;
        }
        if wanted("P15") {
            bench.stores().await;
        }
        if wanted("P16") {
            bench.python().await;
            bench.http().await;
        }
        if wanted("P18") {
            bench.trace().await;
        }
    });
}

struct Bench {
    dir: PathBuf,
}

impl Bench {
    /// P8: what the host adds to a call of a server.
    async fn wire(&self) {
        let server = self.null_server();
        let servers = format!("mcp_servers:\n  null: {{ command: {} }}\n", server.display());
        let host = self.host("p8", "tools: []\n", &servers);
        let hello = json!({ "message": "hi" });
        call(&host, "null-echo", &hello).await;
        let mut raw = RawServer::start(&server);
        let pairs = pairs(
            5_000,
            async |n| raw.calls(n),
            async |n| rate(n, 1, || call(&host, "null-echo", &hello)).await,
        )
        .await;
        let (floor, ours) = (pairs.medians.0, pairs.medians.1);
        let extra = ours.saturating_sub(floor);
        pairs.print("P8", "a call by hand", "through the host, 1 in flight", "bar: 40 µs over it");
        println!("P8   {:.1} µs over a raw call", extra.as_secs_f64() * 1e6);
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let each = rate(30_000, 10, || call(&host, "null-echo", &hello)).await;
            rates.push(1.0 / each.as_secs_f64());
        }
        println!("P8   {:.0} calls/s at 10 in flight (bar: 25000)", median(&mut rates));
        host.close().await;
    }

    /// P12: what recording costs the caller.
    async fn records(&self) {
        let tools = "tools:\n  - { name: say, module: builtin.echo, function: echo }\n";
        let off =
            "stats: { enabled: false }\naudit: { enabled: false }\nhistory: { enabled: false }\n";
        let (with, without) =
            (self.host("p12-on", tools, ""), self.host("p12-off", &format!("{tools}{off}"), ""));
        let arguments = json!({ "message": "hi" });
        let pairs = pairs(
            5_000,
            async |n| rate(n, 1, || call(&without, "say", &arguments)).await,
            async |n| rate(n, 1, || call(&with, "say", &arguments)).await,
        )
        .await;
        let extra = pairs.medians.1.saturating_sub(pairs.medians.0);
        pairs.print("P12", "records off", "records on", "bar: 10 µs more");
        println!("P12  {:.1} µs for the records of a call", extra.as_secs_f64() * 1e6);
    }

    /// P15: stores.
    async fn stores(&self) {
        let tools = "components:\n  - { name: fast, type: storage, storage_type: memory }\n  \
                     - { name: safe, type: storage, storage_type: disk, path: ./safe.db }\n";
        let host = self.host("p15", tools, "");
        let value = json!({ "key": "k", "value": "x".repeat(200) });
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let each = rate(20_000, 8, || call(&host, "fast-write", &value)).await;
            rates.push(1.0 / each.as_secs_f64());
        }
        println!(
            "P15  {:.0} writes/s to memory at 8 in flight (bar: 0.8 x P8)",
            median(&mut rates)
        );
        let log = self.dir.join("fsync.log");
        let pairs = pairs(
            400,
            async |n| fsyncs(&log, n),
            async |n| rate(n, 8, || call(&host, "safe-write", &value)).await,
        )
        .await;
        pairs.print(
            "P15",
            "an append with fsync",
            "a write to disk, 8 in flight",
            "bar: 2 times it",
        );
        host.close().await;
    }

    /// P16, Python.
    async fn python(&self) {
        let module = "import time\n\ndef same(x: int) -> int:\n    return x\n\n\
                      def itself(n: int) -> float:\n    started = time.perf_counter()\n    \
                      for i in range(n):\n        same(x=i)\n    \
                      return (time.perf_counter() - started) / n\n";
        std::fs::write(self.dir.join("warm.py"), module).unwrap();
        let schema = "parameters_schema: { type: object }";
        let tools = format!(
            "tools:\n  - {{ name: same, module: warm, function: same, {schema} }}\n  \
             - {{ name: itself, module: warm, function: itself, {schema} }}\n"
        );
        let host = self.host("p16-python", &tools, "");
        let arguments = json!({ "x": 1 });
        call(&host, "same", &arguments).await;
        let pairs = pairs(
            1_000,
            async |n| {
                let each = call(&host, "itself", &json!({ "n": n })).await;
                seconds(each.as_f64().unwrap())
            },
            async |n| rate(n, 1, || call(&host, "same", &arguments)).await,
        )
        .await;
        pairs.print("P16", "the Python function", "a warm Python call", "bar: 1 ms over it");
        host.close().await;
    }

    /// P16, HTTP.
    async fn http(&self) {
        let port = answer_everything();
        let url = format!("http://127.0.0.1:{port}/thing");
        let tools = format!("tools:\n  - {{ name: thing, endpoint_url: '{url}' }}\n");
        let host = self.host("p16-http", &tools, "");
        let nothing = json!({});
        // The first call also installs the crypto provider that every reqwest client needs.
        call(&host, "thing", &nothing).await;
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let pairs = pairs(
            2_000,
            async |n| {
                rate(n, 1, async || {
                    let answer = client.get(&url).send().await.unwrap();
                    let _value: Value =
                        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
                })
                .await
            },
            async |n| rate(n, 1, || call(&host, "thing", &nothing)).await,
        )
        .await;
        pairs.print("P16", "plain reqwest", "a warm HTTP tool", "bar: 150 µs over it");
        host.close().await;
    }

    /// P18: the cost of tracing the wire.
    async fn trace(&self) {
        let server = self.null_server();
        let servers = format!("mcp_servers:\n  null: {{ command: {} }}\n", server.display());
        let hello = json!({ "message": "hi" });
        let unseen = self.host("p18-off", "tools: []\n", &servers);
        call(&unseen, "null-echo", &hello).await;
        let seen = Arc::new(AtomicUsize::new(0));
        let counting = {
            let seen = Arc::clone(&seen);
            TrafficSink::new(move |_| {
                seen.fetch_add(1, Ordering::Relaxed);
            })
        };
        let front_end = FrontEnd { traffic: counting, ..FrontEnd::headless() };
        let host = self.host_for("p18-on", "tools: []\n", &servers, front_end);
        call(&host, "null-echo", &hello).await;
        let pairs = pairs(
            5_000,
            async |n| rate(n, 1, || call(&unseen, "null-echo", &hello)).await,
            async |n| rate(n, 1, || call(&host, "null-echo", &hello)).await,
        )
        .await;
        pairs.print("P18", "nobody looks", "watched", "bar: 1.2 times");
        host.close().await;
        assert!(seen.load(Ordering::Relaxed) > 0, "nothing was seen");
        unseen.close().await;
    }

    /// A host over these two files, with a home of its own.
    fn host(&self, name: &str, tools: &str, servers: &str) -> Arc<ToolHost> {
        self.host_for(name, tools, servers, FrontEnd::headless())
    }

    /// The same for a front end.
    fn host_for(
        &self,
        name: &str,
        tools: &str,
        servers: &str,
        front_end: FrontEnd,
    ) -> Arc<ToolHost> {
        let file = self.dir.join(format!("{name}.yaml"));
        std::fs::write(&file, tools).unwrap();
        let mut files = LoadRequest { tools: vec![file], ..LoadRequest::default() };
        if !servers.is_empty() {
            let file = self.dir.join(format!("{name}-mcp.yaml"));
            std::fs::write(&file, servers).unwrap();
            files.servers.push(file);
        }
        let environment: Arc<dyn Environment> = Arc::new(FixedEnvironment {
            vars: ProcessEnvironment.vars(),
            cwd: self.dir.clone(),
            root: Some(self.dir.join(name)),
        });
        let options = AssemblyOptions { files, ..AssemblyOptions::default() };
        let built = toolhost::assemble(&options, &environment, front_end);
        let built = built.unwrap_or_else(|fault| panic!("{fault}"));
        assert!(
            built.configuration.diagnostics.is_empty(),
            "{:?}",
            built.configuration.diagnostics
        );
        built.host
    }

    /// The null server, compiled.
    fn null_server(&self) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/null_server.c");
        let program = self.dir.join("null_server");
        let status =
            Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source).status().unwrap();
        assert!(status.success(), "the null server does not compile");
        program
    }
}

/// One call that has to succeed.
async fn call(host: &ToolHost, name: &str, arguments: &Value) -> Value {
    let Value::Object(arguments) = arguments.clone() else { return Value::Null };
    let mut request = CallRequest::new(name, CallArguments::Object(arguments));
    request.assume_yes = true;
    let outcome = host.call(request).await.unwrap_or_else(|fault| panic!("{fault}"));
    match outcome.result {
        Ok(result) if result.success => result.output,
        other => panic!("{other:?}"),
    }
}

/// The time of each of `count` calls, `width` in flight.
async fn rate<F: Future>(count: usize, width: usize, once: impl Fn() -> F) -> Duration {
    let started = Instant::now();
    let left = std::cell::Cell::new(count);
    let lane = async || {
        while left.get() > 0 {
            left.set(left.get() - 1);
            once().await;
        }
    };
    futures_util::future::join_all((0..width).map(|_| lane())).await;
    started.elapsed() / u32::try_from(count).unwrap()
}

/// Both sides of a comparison.
struct Pairs {
    medians: (Duration, Duration),
    ratio: f64,
}

impl Pairs {
    fn print(&self, figure: &str, yardstick: &str, ours: &str, bar: &str) {
        let mut line = String::new();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        write!(line, "{figure:<4} {yardstick}: {:.2} µs, ", micros(self.medians.0)).unwrap();
        write!(line, "{ours}: {:.2} µs, {:.2} times ({bar})", micros(self.medians.1), self.ratio)
            .unwrap();
        println!("{line}");
    }
}

/// Measures both sides in turns.
async fn pairs(
    count: usize,
    mut yardstick: impl AsyncFnMut(usize) -> Duration,
    mut ours: impl AsyncFnMut(usize) -> Duration,
) -> Pairs {
    let (mut left, mut right, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (a, b) = (yardstick(count).await, ours(count).await);
        ratios.push(b.as_secs_f64() / a.as_secs_f64());
        left.push(a.as_secs_f64());
        right.push(b.as_secs_f64());
    }
    let medians = (median(&mut left), median(&mut right));
    Pairs { medians: (seconds(medians.0), seconds(medians.1)), ratio: median(&mut ratios) }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The null server, spoken to by hand: one line out, one line in.
struct RawServer {
    child: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl RawServer {
    fn start(program: &Path) -> Self {
        let mut child =
            Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn calls(&mut self, count: usize) -> Duration {
        let started = Instant::now();
        let mut line = String::new();
        for id in 0..count {
            let request = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":\
                 {{\"name\":\"echo\",\"arguments\":{{\"message\":\"hi\"}}}}}}\n"
            );
            self.child.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
            line.clear();
            self.answers.read_line(&mut line).unwrap();
        }
        started.elapsed() / u32::try_from(count).unwrap()
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// The time of one append that is forced to the disk.
fn fsyncs(path: &Path, count: usize) -> Duration {
    let mut file = std::fs::File::create(path).unwrap();
    let started = Instant::now();
    for _ in 0..count {
        file.write_all(&[b'x'; 250]).unwrap();
        file.sync_data().unwrap();
    }
    started.elapsed() / u32::try_from(count).unwrap()
}

/// A server in a thread that answers every request with the same small object.
fn answer_everything() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut kept = Vec::new();
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut piece) {
                    kept.extend_from_slice(&piece[..count]);
                    while let Some(end) = kept.windows(4).position(|w| w == b"\r\n\r\n") {
                        kept.drain(..end + 4);
                        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                                      content-length: 13\r\n\r\n{\"answer\":42}";
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                }
            });
        }
    });
    port
}
