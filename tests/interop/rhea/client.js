// rhea as a foreign client:  node client.js send|receive HOST PORT NODE COUNT
// HOST may say how: amqps://HOST, ws://HOST, wss://HOST (NODE_EXTRA_CA_CERTS: whom to trust).
// The body of message i is text when i is even, bytes when odd (see the docstring of tests/interop/clients.py).
// Prints one line of JSON; exit 0 when all were accepted, or all received as they should be.
"use strict";
const rhea = require("rhea");
const [mode, host, port, node, countText] = process.argv.slice(2);
const count = Number(countText);
const container = rhea.create_container({ id: `rhea-${process.pid}` });
const result = { accepted: 0, refused: 0, received: 0, distinct: 0, wrong: [], error: "" };
const seen = new Set();

function text(i) {
  return `message ${i} é ☃ 𝄞`;
}

function bytes(i) {
  const content = Buffer.alloc(i % 257);
  for (let at = 0; at < content.length; at++) content[at] = (i + at) & 255;
  return content;
}

function matches(i, body) {
  if (i % 2 === 0) return body === text(i);
  return body && body.typecode === 0x75 && Buffer.compare(Buffer.from(body.content), bytes(i)) === 0;
}

function finish(connection) {
  result.distinct = seen.size;
  connection.close();
}

function fail(what) {
  result.error = String(what);
  console.log(JSON.stringify(result));
  process.exit(1);
}

let sent = 0;
container.on("sendable", ({ sender }) => {
  while (sent < count && sender.sendable()) {
    const body = sent % 2 === 0 ? text(sent) : rhea.message.data_section(bytes(sent));
    sender.send({ body, durable: true, application_properties: { number: rhea.types.wrap_int(sent) } });
    sent++;
  }
});
container.on("accepted", ({ connection }) => {
  if (++result.accepted === count) finish(connection);
});
for (const refusal of ["rejected", "released", "modified"]) {
  container.on(refusal, () => fail(`${refusal}: message ${++result.refused}`));
}
container.on("message", ({ message, connection }) => {
  const number = Number(message.application_properties.number);
  if (!matches(number, message.body)) result.wrong.push(number);
  seen.add(number);
  if (++result.received === count) finish(connection);
});
for (const fault of ["connection_error", "session_error", "sender_error", "receiver_error"]) {
  container.on(fault, (context) => fail(`${fault}: ${(context[fault.split("_")[0]] || {}).error}`));
}
container.on("disconnected", ({ error }) => {
  if (result.accepted !== count && result.received !== count) fail(`disconnected: ${error}`);
});
container.on("connection_close", () => {
  console.log(JSON.stringify(result));
  process.exit(result.wrong.length === 0 && result.distinct === (mode === "receive" ? count : 0) ? 0 : 1);
});
setTimeout(() => fail("no end within 60 s"), 60000).unref();

const address = /^(amqps|wss?):$/.exec(host.split("//")[0]);
let details = { host, port: Number(port) };
if (address && address[1] === "amqps") details = { host: host.split("//")[1], port: Number(port), transport: "tls" };
else if (address) {
  const ws = container.websocket_connect(require("ws"));
  details = { connection_details: ws(`${host}:${port}`, ["amqp"]) };
}
const connection = container.connect({ ...details, reconnect: false });
if (mode === "send") connection.open_sender({ target: { address: node, capabilities: ["queue"] } });
else connection.open_receiver({ source: { address: node, capabilities: ["queue"] }, credit_window: 100 });
