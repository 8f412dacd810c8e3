// Draws the drone, tracks and radar returns in perspective on a plain canvas: no WebGL is needed,
// so that it also works in a remote desktop and on a machine without a graphics driver.

const TRAIL = 5; // s
const HALF_BODY = 0.85; // m, above and below the middle of a person
const GRID = 5; // m
const LONGEST_ELLIPSE = 10; // m
const NEAR = 0.3; // m

const add = (a, b, k = 1) => [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((v) => v / (Math.hypot(...a) || 1));

// Give a canvas as many pixels as it has on the screen; return how many for each of the page.
export function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return ratio;
}

export class Scene {
  constructor(canvas, css) {
    this.canvas = canvas;
    this.css = css;
    this.context = canvas.getContext('2d');
    this.state = null;
    this.trails = new Map(); // id -> [[stamp, position], ...]
    this.ground = null;
    this.eye = null; // what the view is centred on, its distance and direction, all smoothed
    this.drawnAt = 0;
    this.reset();
    this.listen();
    requestAnimationFrame(() => this.tick());
  }

  reset() {
    this.turn = 0.5; // rad, from straight behind the drone
    this.rise = 0.5; // rad, above the horizon
    this.factor = 1; // of the distance that shows everything
  }

  zoom(factor) {
    this.factor = Math.min(Math.max(this.factor * factor, 0.15), 6);
  }

  rotate(right, up) {
    this.turn -= right;
    this.rise = Math.min(Math.max(this.rise + up, 0.05), 1.55);
  }

  take(state) {
    const stamp = state.stamp ?? 0;
    if (this.state && (state.frame !== this.state.frame || stamp < (this.state.stamp ?? 0) - 1)) {
      this.trails.clear(); // another flight, or the same one from its beginning
    }
    for (const { id, position } of state.tracks) {
      const trail = this.trails.get(id) ?? [];
      if (!trail.length || trail.at(-1)[0] < stamp) trail.push([stamp, position]);
      this.trails.set(id, trail);
    }
    for (const [id, trail] of this.trails) {
      while (trail.length && trail[0][0] < stamp - TRAIL) trail.shift();
      if (!trail.length) this.trails.delete(id);
    }
    this.state = state;
    this.takenAt = performance.now();
  }

  listen() {
    const { canvas } = this;
    let last = null;
    canvas.addEventListener('pointerdown', (event) => {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!last) return;
      this.rotate((event.clientX - last[0]) / 200, (event.clientY - last[1]) / 200);
      last = [event.clientX, event.clientY];
    });
    for (const end of ['pointerup', 'pointercancel']) {
      canvas.addEventListener(end, () => (last = null));
    }
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY / 600));
    }, { passive: false });
    canvas.addEventListener('dblclick', () => this.reset());
    canvas.addEventListener('keydown', (event) => {
      const steps = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1],
        ArrowDown: [0, -0.1] };
      if (steps[event.key]) this.rotate(...steps[event.key]);
      else if (event.key === '+') this.zoom(0.8);
      else if (event.key === '-') this.zoom(1.25);
      else return;
      event.preventDefault();
    });
  }

  tick() {
    requestAnimationFrame(() => this.tick());
    const time = performance.now();
    if (document.hidden || time - this.drawnAt < 30) return; // 30 pictures a second are smooth
    const elapsed = Math.min((time - this.drawnAt) / 1000, 0.5);
    this.drawnAt = time;
    this.fit();
    this.context.clearRect(0, 0, this.width, this.height);
    if (!this.state) return;
    this.tracks = this.tracksNow(time);
    this.follow(elapsed);
    this.draw();
  }

  // Between two states tracks go on as the tracker predicts them.
  tracksNow(time) {
    const elapsed = Math.min((time - this.takenAt) / 1000, 0.15);
    return this.state.tracks.map((track) => ({
      ...track, position: add(track.position, track.velocity, elapsed) }));
  }

  fit() {
    const ratio = fit(this.canvas);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  // Move the view gently so that drone and tracks are in it, seen from behind the drone.
  follow(elapsed) {
    const rig = this.state.rig ?? { position: [0, 0, 0], forward: [1, 0, 0] };
    const near = this.tracks.map((t) => t.position).filter(
      (p) => Math.hypot(p[0] - rig.position[0], p[1] - rig.position[1]) < 60);
    const feet = near.map((p) => p[2] - HALF_BODY).sort((a, b) => a - b);
    const ground = feet.length ? feet[Math.floor(feet.length / 2)]
      : this.ground ?? Math.min(rig.position[2] - 1.5, 0);
    const ahead = add(rig.position, rig.forward, 8);
    const points = [rig.position, ...near, ...(near.length ? [] : [ahead])];
    const low = [0, 1, 2].map((i) => Math.min(...points.map((p) => p[i])));
    const high = [0, 1, 2].map((i) => Math.max(...points.map((p) => p[i])));
    const wanted = {
      target: low.map((v, i) => (v + high[i]) / 2),
      distance: Math.min(Math.max(Math.hypot(...add(high, low, -1)) * 0.85 + 4, 8), 90),
      yaw: Math.atan2(rig.forward[1], rig.forward[0]),
    };
    wanted.target[2] = ground + 1;
    const share = this.eye ? 1 - Math.exp(-elapsed / 0.8) : 1;
    const eye = this.eye ?? wanted;
    const swing = Math.atan2(Math.sin(wanted.yaw - eye.yaw), Math.cos(wanted.yaw - eye.yaw));
    this.ground = (this.ground ?? ground) + 0.3 * share * (ground - (this.ground ?? ground));
    this.eye = {
      target: eye.target.map((v, i) => v + share * (wanted.target[i] - v)),
      distance: eye.distance + share * (wanted.distance - eye.distance),
      yaw: eye.yaw + share * swing,
    };
    const angle = this.eye.yaw + Math.PI + this.turn;
    const back = [Math.cos(this.rise) * Math.cos(angle), Math.cos(this.rise) * Math.sin(angle),
      Math.sin(this.rise)];
    this.from = add(this.eye.target, back, this.eye.distance * this.factor);
    this.forward = back.map((v) => -v);
    this.right = unit(cross(this.forward, [0, 0, 1]));
    this.up = cross(this.right, this.forward);
    this.focus = 0.95 * Math.min(this.width, this.height * 1.5);
  }

  // Canvas x, y and depth (m) of a point; depth decides what lies behind the viewer.
  project(point) {
    const offset = add(point, this.from, -1);
    const depth = dot(offset, this.forward);
    const scale = this.focus / Math.max(depth, NEAR);
    return [this.width / 2 + scale * dot(offset, this.right),
      this.height / 2 - scale * dot(offset, this.up), depth];
  }

  // The visible part of a line from a to b.
  line(a, b) {
    const [da, db] = [a, b].map((p) => dot(add(p, this.from, -1), this.forward) - NEAR);
    if (da < 0 && db < 0) return;
    const cut = add(a, add(b, a, -1), da / (da - db));
    const [x0, y0] = this.project(da < 0 ? cut : a);
    const [x1, y1] = this.project(db < 0 ? cut : b);
    this.context.moveTo(x0, y0);
    this.context.lineTo(x1, y1);
  }

  lines(points, colour, width, alpha = 1) {
    const { context } = this;
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (let i = 1; i < points.length; i += 1) this.line(points[i - 1], points[i]);
    context.stroke();
    context.globalAlpha = 1;
  }

  area(points, colour, alpha) {
    const flat = points.map((p) => this.project(p));
    if (flat.some(([, , depth]) => depth < NEAR)) return;
    const { context } = this;
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.beginPath();
    flat.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.fill();
    context.globalAlpha = 1;
  }

  draw() {
    this.colours = Object.fromEntries(
      ['ink', 'quiet', 'card', 'grid', 'moving', 'still', 'accent'].map(
        (name) => [name, this.css(`--${name}`)]));
    this.drawGrid();
    for (const track of this.tracks) this.drawOnGround(track);
    this.drawReturns();
    if (this.state.rig) this.drawDrone(this.state.rig);
    const far = (track) => -this.project(track.position)[2];
    const sorted = [...this.tracks].sort((a, b) => far(a) - far(b));
    for (const track of sorted) this.drawBody(track);
    const taken = [];
    for (const track of sorted.reverse()) this.drawId(track, taken);
  }

  drawGrid() {
    const reach = 8 * GRID;
    const [x, y] = this.eye.target.map((v) => Math.round(v / GRID) * GRID);
    for (let k = -reach; k <= reach; k += GRID) {
      const alpha = 1 - 0.75 * Math.abs(k) / reach;
      this.lines([[x + k, y - reach, this.ground], [x + k, y + reach, this.ground]],
        this.colours.grid, 1, alpha);
      this.lines([[x - reach, y + k, this.ground], [x + reach, y + k, this.ground]],
        this.colours.grid, 1, alpha);
    }
  }

  // Uncertainty, trail and velocity lie on the ground below a person.
  drawOnGround(track) {
    const foot = (p) => [p[0], p[1], this.ground];
    const place = foot(track.position);
    const [long, short] = track.deviation.map((d) => Math.min(Math.max(d, 0.1), LONGEST_ELLIPSE));
    const [c, s] = [Math.cos(track.direction), Math.sin(track.direction)];
    const ring = Array.from({ length: 33 }, (_, i) => {
      const [a, b] = [long * Math.cos((i * Math.PI) / 16), short * Math.sin((i * Math.PI) / 16)];
      return [place[0] + a * c - b * s, place[1] + a * s + b * c, this.ground];
    });
    this.area(ring, track.colour, 0.25);
    this.lines(ring, track.colour, 1, 0.8);
    const trail = (this.trails.get(track.id) ?? []).map(([, p]) => foot(p));
    this.context.setLineDash([6, 4]);
    this.lines([...trail, place], track.colour, 2, 0.7);
    this.context.setLineDash([]);
    const speed = Math.hypot(track.velocity[0], track.velocity[1]);
    if (speed < 0.2) return;
    const tip = foot(add(track.position, track.velocity));
    const along = [track.velocity[0] / speed, track.velocity[1] / speed, 0];
    const aside = [-along[1], along[0], 0];
    const barb = (side) => add(add(tip, along, -0.35), aside, 0.22 * side);
    this.lines([place, tip], track.colour, 3);
    this.lines([barb(1), tip, barb(-1)], track.colour, 3);
  }

  drawReturns() {
    const { context } = this;
    for (const [x, y, z, moves] of this.state.returns) {
      const [px, py, depth] = this.project([x, y, z]);
      if (depth < NEAR) continue;
      context.fillStyle = this.colours[moves ? 'moving' : 'still'];
      context.beginPath();
      context.arc(px, py, moves ? 3 : 2, 0, 2 * Math.PI);
      context.fill();
    }
  }

  drawDrone({ position, forward, corners }) {
    const { ink, accent } = this.colours;
    this.context.setLineDash([2, 4]);
    this.lines([position, [position[0], position[1], this.ground]], ink, 1, 0.6);
    this.context.setLineDash([]);
    if (corners.length) {
      this.area([position, corners[0], corners[1]], accent, 0.1);
      this.area([position, corners[2], corners[3]], accent, 0.1);
      for (const corner of corners) this.lines([position, corner], accent, 1, 0.5);
      this.lines([...corners, corners[0]], accent, 1, 0.8);
    }
    const yaw = Math.atan2(forward[1], forward[0]);
    for (const turn of [1, 3, 5, 7]) {
      const angle = yaw + (turn * Math.PI) / 4;
      const end = add(position, [Math.cos(angle), Math.sin(angle), 0], 0.5);
      this.lines([position, end], ink, 3);
      const rotor = Array.from({ length: 13 }, (_, i) => add(end,
        [Math.cos((i * Math.PI) / 6), Math.sin((i * Math.PI) / 6), 0], 0.25));
      this.lines(rotor, ink, 1.5);
    }
    const [x, y, depth] = this.project(add(position, [0, 0, 0.4]));
    if (depth > NEAR) this.write('drone', x, y - 4, ink);
  }

  drawBody(track) {
    const [px, py, depth] = this.project(add(track.position, [0, 0, -HALF_BODY + 0.25]));
    if (depth < NEAR) return;
    const [nx, ny] = this.project(add(track.position, [0, 0, 0.35]));
    const [hx, hy] = this.project(add(track.position, [0, 0, 0.7]));
    const metre = this.focus / depth;
    const { context } = this;
    context.lineCap = 'round';
    context.globalAlpha = track.in_picture ? 1 : 0.45;
    for (const [grow, colour] of [[2, this.colours.ink], [0, track.colour]]) {
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = Math.max(0.4 * metre, 3) + grow;
      context.beginPath();
      context.moveTo(px, py);
      context.lineTo(nx, ny);
      context.stroke();
      context.beginPath();
      context.arc(hx, hy, Math.max(0.16 * metre, 2) + grow / 2, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
    context.lineCap = 'butt';
  }

  // Ids of nearer people come first; others move up until they cover none of them.
  drawId(track, taken) {
    const [x, y, depth] = this.project(add(track.position, [0, 0, HALF_BODY + 0.1]));
    if (depth < NEAR) return;
    const { context } = this;
    context.font = 'bold 13px system-ui, sans-serif';
    const text = String(track.id);
    const width = context.measureText(text).width + 8;
    const left = Math.min(Math.max(x - width / 2, 2), this.width - width - 2);
    let top = Math.max(y - 20, 2);
    const covers = (b) => left < b.left + b.width && b.left < left + width
      && top < b.top + 18 && b.top < top + 18;
    for (let tries = 0; tries < 12 && taken.some(covers); tries += 1) {
      top = Math.min(...taken.filter(covers).map((b) => b.top)) - 19;
    }
    taken.push({ left, top, width });
    context.strokeStyle = context.fillStyle = track.colour;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, top + 17);
    context.stroke();
    context.fillRect(left, top, width, 17);
    context.fillStyle = '#000';
    context.textAlign = 'left';
    context.fillText(text, left + 4, top + 13);
  }

  write(text, x, y, colour) {
    const { context } = this;
    context.font = '12px system-ui, sans-serif';
    context.textAlign = 'center';
    context.fillStyle = colour;
    context.fillText(text, x, y);
    context.textAlign = 'left';
  }
}
