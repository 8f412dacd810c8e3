// Listens to the viewer while the tab is visible, and fills the page.
import { Scene, fit } from './scene.js';

const SILENT = 3; // s without a decision after which the page says so
const at = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const scene = new Scene(at('scene'), css);

let source = null; // of states, while the tab is visible
let pictures = null; // AbortController of the picture loop
let heardAt = 0; // s, when the newest state arrived
let openedAt = 0;
let state = null;
let pictureAt = 0;

const now = () => performance.now() / 1000;
const ms = (seconds) => (seconds == null ? '–' : `${(1000 * seconds).toFixed(1)} ms`);
const number = (value, digits, unit) =>
  value == null ? null : `${value.toFixed(digits)} ${unit}`.trim();

function connect() {
  if (source || document.hidden) return;
  openedAt = now();
  source = new EventSource('states');
  source.onmessage = (event) => {
    heardAt = now();
    state = JSON.parse(event.data);
    scene.take(state);
    show();
  };
  source.onerror = () => {
    // The browser tries again by itself, except where it was refused.
    if (source && source.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(connect, 1000);
    }
  };
  pictures = new AbortController();
  showPictures(pictures.signal);
}

function disconnect() {
  source?.close();
  pictures?.abort();
  source = pictures = null;
}

async function showPictures(signal) {
  const canvas = at('picture');
  for (let after = 0; !signal.aborted; ) {
    try {
      const answer = await fetch(`picture?after=${after}`, { signal });
      after = Number(answer.headers.get('Picture-Number')) || after;
      if (answer.status !== 200) continue;
      const picture = await createImageBitmap(await answer.blob());
      if (canvas.width !== picture.width || canvas.height !== picture.height) {
        canvas.width = picture.width;
        canvas.height = picture.height;
      }
      canvas.getContext('2d').drawImage(picture, 0, 0);
      picture.close();
      pictureAt = now();
      at('no-picture').hidden = true;
    } catch {
      if (!signal.aborted) await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

function show() {
  showFigures(at('latencies'), latencyFigures(state));
  showFigures(at('system'), systemFigures(state.system));
  at('no-system').hidden = at('system').children.length > 0;
  at('origin').textContent = state.replayed ? 'as recorded, where the recording holds them' : '';
  showModalities(state);
  drawSparkline(state);
  const count = state.tracks.length;
  const rate = state.latency.rate;
  at('summary').textContent = state.silence == null ? '' :
    `${count} ${count === 1 ? 'person' : 'people'} tracked · ${rate.toFixed(0)} decisions per second`;
  showStatus();
}

function latencyFigures({ latency, deadline, configuration }) {
  const limit = configuration?.latency_limit ?? deadline;
  const late = latency.p95 != null && latency.p95 > limit;
  const ages = Object.entries(latency.ages).map(([name, age]) => [`age of ${name} data`, ms(age)]);
  return [
    ['half within (p50)', ms(latency.p50)],
    ['95 % within (p95)', ms(latency.p95), late ? 'bad' : ''],
    ['deadline', ms(limit)],
    ['later than that', `${latency.late} of ${latency.decisions}`, latency.late ? 'warn' : ''],
    ...ages,
  ];
}

function systemFigures(system) {
  if (!system) return [];
  const percent = (value) => number(value == null ? null : value, 0, '%');
  const charge = system.charge == null ? null : 100 * system.charge;
  return [
    ['battery charge', percent(charge), charge != null && charge < 25 ? 'bad' : ''],
    ['battery voltage', number(system.voltage, 1, 'V')],
    ['power', number(system.power, 0, 'W')],
    [`processor (${system.cores} cores)`, percent(system.cpu), system.cpu > 90 ? 'warn' : ''],
    ['GPU', percent(system.gpu)],
    ['memory', percent(system.memory), system.memory > 90 ? 'warn' : ''],
    ['hottest part', number(system.temperature, 0, '°C'), system.temperature > 85 ? 'bad' : ''],
    ['clocks', system.throttled ? 'throttled' : null, 'bad'],
  ].filter(([, value]) => value != null);
}

// Elements are kept and only their texts change, so that the page does not flicker.
function showFigures(list, figures) {
  while (list.children.length > 2 * figures.length) list.lastChild.remove();
  while (list.children.length < 2 * figures.length) {
    list.append(document.createElement(list.children.length % 2 ? 'dd' : 'dt'));
  }
  figures.forEach(([name, value, kind], index) => {
    list.children[2 * index].textContent = name;
    list.children[2 * index + 1].textContent = value;
    list.children[2 * index + 1].className = kind || '';
  });
}

function showModalities({ modalities, configuration }) {
  const rows = Object.entries(modalities).map(([name, { rate, limit, level }]) => [
    name,
    rate == null ? '–' : `${rate.toFixed(0)} Hz`,
    limit ? `${limit.toFixed(0)} Hz` : 'native',
    level || '–',
  ]);
  const body = at('modalities');
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, index) => {
    const row = body.rows[index] || body.insertRow();
    cells.forEach((text, column) => {
      (row.cells[column] || row.insertCell()).textContent = text;
    });
  });
  at('reason').textContent = configuration
    ? `configuration ${configuration.id}: ${configuration.reason}`
    : 'fixed: the optimiser is not running';
}

function drawSparkline({ latency, deadline, configuration }) {
  const canvas = at('sparkline');
  const values = latency.newest;
  const limit = configuration?.latency_limit ?? deadline;
  fit(canvas);
  const { width, height } = canvas;
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, width, height);
  const top = Math.max(limit, ...values) * 1.1;
  const y = (value) => height - 2 - ((height - 4) * Math.max(value, 0)) / top;
  context.strokeStyle = css('--bad');
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(0, y(limit));
  context.lineTo(width, y(limit));
  context.stroke();
  context.setLineDash([]);
  const step = width / 40;
  values.forEach((value, index) => {
    context.fillStyle = css(value > limit ? '--bad' : '--accent');
    context.fillRect(index * step, y(value), step * 0.7, height - y(value));
  });
  at('sparkline-caption').textContent = values.length
    ? 'the newest decisions, one bar each; dashed: the deadline'
    : '';
}

function showStatus() {
  const [kind, word, notice] = status();
  at('status').className = kind;
  at('status').textContent = word;
  at('notice').textContent = notice;
  at('notice').hidden = !notice;
  if (now() - pictureAt > SILENT && kind === 'live') {
    at('no-picture').hidden = false;
    at('no-picture').textContent = pictureAt ? 'no new picture' : 'no picture yet';
  }
}

function status() {
  const quiet = now() - Math.max(heardAt, openedAt);
  if (quiet > SILENT && state?.ended) {
    return ['waiting', 'ended', 'The recording has ended; this is its last moment. The page goes on '
      + 'by itself when the next one begins.'];
  }
  if (!source || (quiet > SILENT && now() - heardAt > SILENT)) {
    return ['gone', 'no connection', 'The viewer does not answer; this page tries again by itself. '
      + 'Has the flight ended, or the tunnel closed?'];
  }
  if (!state || heardAt < openedAt) return ['waiting', 'connecting', ''];
  const silence = state.silence == null ? null : state.silence + now() - heardAt;
  if (state.ended && (silence == null || silence > 1)) {
    return ['waiting', 'ended', 'The recording has ended; this is its last moment.'];
  }
  if (silence == null) {
    return ['waiting', 'waiting', now() - openedAt < SILENT ? '' :
      'No decision yet: the graph is starting, or camera and radar do not publish.'];
  }
  if (silence > SILENT) {
    return ['waiting', 'silent',
      `No decisions for ${silence.toFixed(0)} s: are the camera and the radar there?`];
  }
  const lost = state.lost?.length ? [`no data from ${state.lost.join(' and ')}`] : [];
  return ['live', 'live', [...lost, ...(state.degraded || [])].join('; ')];
}

document.addEventListener('visibilitychange', () => (document.hidden ? disconnect() : connect()));
addEventListener('pagehide', disconnect);
addEventListener('pageshow', connect);
setInterval(showStatus, 500);
for (const [id, act] of [
  ['nearer', () => scene.zoom(0.8)],
  ['farther', () => scene.zoom(1.25)],
  ['reset', () => scene.reset()],
]) {
  at(id).addEventListener('click', act);
}
at('scale').textContent = 'squares of 5 m';
connect();
