'use strict';
// Small pictures in SVG. Text from the data only ever goes through textContent.

const SVG = 'http://www.w3.org/2000/svg';
const COLOURS = ['blue', 'red', 'green', 'pink', 'ink', 'orange', 'sky', 'brown'];
const DASHES = ['', '7 4', '2 4', '9 3 2 3', '14 4'];
const NAMED = 10;
const LISTED = 40;

function make(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function number(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  return String(Number(value.toPrecision(digits))).replace(/-/g, '−');
}

// A share with four decimals, so that a column of them lines up.
function share(value) {
  return value > 0 && value < 5e-5 ? '< 0.0001' : value.toFixed(4).replace('-', '−');
}

function cut(text, length) {
  const letters = Array.from(text);
  return letters.length > length ? letters.slice(0, length - 1).join('') + '…' : text;
}

// Round numbers between low and high, about as many as asked for.
function ticks(low, high, about) {
  const raw = (high - low) / Math.max(about, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= raw);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(i * step);
  return out;
}

// Axes for the sizes of the path, and the way to draw into them.
class Frame {
  constructor(box, sizes, low, high, { height, left = 52, right = 14, top = 12, label, title }) {
    this.width = Math.max(box.clientWidth || 0, 260);
    Object.assign(this, { box, sizes, low, high, height, left, right, top, bottom: 44 });
    this.svg = make('svg', { viewBox: `0 0 ${this.width} ${height}`, role: 'img', 'aria-label': title });
    const clip = make('clipPath', { id: `${box.id}-clip` });
    clip.append(make('rect', { x: left, y: this.top - 4, width: Math.max(1, this.width - left - right + 4), height: height - this.bottom - this.top + 8 }));
    this.svg.append(clip);
    if (low !== null) this.#values(label);
    this.#sizes();
    box.replaceChildren(this.svg);
  }
  x(i) {
    const span = this.sizes[this.sizes.length - 1] - this.sizes[0] || 1;
    const share = (this.sizes[i] - this.sizes[0]) / span;
    return this.left + 8 + share * (this.width - this.left - this.right - 16);
  }
  y(value) {
    const share = (value - this.low) / (this.high - this.low || 1);
    return this.height - this.bottom - share * (this.height - this.bottom - this.top);
  }
  #values(label) {
    for (const value of ticks(this.low, this.high, 5)) {
      const y = this.y(value);
      this.svg.append(make('line', { class: 'grid', x1: this.left, x2: this.width - this.right, y1: y, y2: y }),
        make('text', { x: this.left - 7, y: y + 4, 'text-anchor': 'end' }, number(value, 3)));
    }
    const middle = (this.top + this.height - this.bottom) / 2;
    this.svg.append(make('text', { transform: `translate(12 ${middle}) rotate(-90)`, 'text-anchor': 'middle' }, label));
  }
  #sizes() {
    const y = this.height - this.bottom, room = (this.width - this.left - this.right) / 30;
    const every = Math.max(1, Math.ceil(this.sizes.length / room));
    this.svg.append(make('line', { class: 'axis', x1: this.left, x2: this.width - this.right, y1: y, y2: y }));
    this.sizes.forEach((size, i) => {
      if (i % every) return;
      this.svg.append(make('line', { class: 'axis', x1: this.x(i), x2: this.x(i), y1: y, y2: y + 4 }),
        make('text', { x: this.x(i), y: y + 17, 'text-anchor': 'middle' }, String(size)));
    });
    this.svg.append(make('text', { x: (this.left + this.width - this.right) / 2, y: y + 36, 'text-anchor': 'middle' },
      'number of columns'));
  }
  // A broken line: nothing where there is no value.
  line(values, attributes) {
    let d = '', pen = false;
    values.forEach((value, i) => {
      if (value === null) { pen = false; return; }
      d += `${pen ? 'L' : 'M'}${this.x(i).toFixed(1)} ${this.y(value).toFixed(1)}`;
      pen = true;
    });
    const path = make('path', { d, 'clip-path': `url(#${this.box.id}-clip)`, ...attributes });
    this.svg.append(path);
    return path;
  }
  mark(i, value, shape, attributes) {
    const x = this.x(i), y = this.y(value), r = this.sizes.length > 30 ? 2.6 : 3.6;
    const shapes = {
      circle: () => make('circle', { cx: x, cy: y, r, ...attributes }),
      square: () => make('rect', { x: x - r, y: y - r, width: 2 * r, height: 2 * r, ...attributes }),
      diamond: () => make('path', { d: `M${x} ${y - 5}L${x + 5} ${y}L${x} ${y + 5}L${x - 5} ${y}Z`, ...attributes }),
      triangle: () => make('path', { d: `M${x} ${y - 5}L${x + 5} ${y + 4}L${x - 5} ${y + 4}Z`, ...attributes }),
    };
    const element = shapes[shape]();
    this.svg.append(element);
    return element;
  }
  // The line at the present size, and one invisible stripe per size to point at and to click.
  finish(now, describe) {
    const y = this.height - this.bottom;
    this.svg.append(make('line', { class: 'now-line', x1: this.x(now), x2: this.x(now), y1: this.top, y2: y }));
    if (!describe) return;
    this.sizes.forEach((_, i) => {
      const start = i ? (this.x(i - 1) + this.x(i)) / 2 : this.left;
      const end = i < this.sizes.length - 1 ? (this.x(i) + this.x(i + 1)) / 2 : this.width - this.right;
      const stripe = make('rect', { x: start, y: this.top, width: end - start, height: y - this.top, fill: 'transparent', 'data-i': i });
      stripe.dataset.tip = describe(i);
      this.svg.append(stripe);
    });
  }
}

// Labels at the right, moved apart so that none covers another.
function spread(places, gap, low, high) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const out = places.map(place => Math.max(place, low));
  order.forEach((i, rank) => { if (rank) out[i] = Math.max(out[i], out[order[rank - 1]] + gap); });
  const excess = order.length ? Math.max(0, out[order[order.length - 1]] - high) : 0;
  order.forEach(i => { out[i] -= excess; });
  for (let rank = order.length - 2; rank >= 0; rank--) out[order[rank]] = Math.min(out[order[rank]], out[order[rank + 1]] - gap);
  return out;
}

function legend(frame, entries) {
  let x = frame.left + 4;
  const group = make('g');
  for (const [text, draw] of entries) {
    group.append(...draw(x, 6), make('text', { x: x + 26, y: 10, class: 'strong' }, text));
    x += 40 + 6.6 * text.length;
  }
  frame.svg.append(group);
}

const stroke = (colour, dash = '') => `stroke: var(--${colour}); stroke-dasharray: ${dash || 'none'}`;
const sample = (colour, dash, shape) => (x, y) => {
  const line = make('line', { x1: x, x2: x + 20, y1: y, y2: y, class: 'series', style: stroke(colour, dash) });
  const at = { fill: `var(--${colour})` };
  const point = shape === 'square' ? make('rect', { x: x + 7, y: y - 3, width: 6, height: 6, ...at })
    : make('circle', { cx: x + 10, cy: y, r: 3.4, ...at });
  return [line, point];
};

function drawCurve(box, data, now) {
  const key = 'explained', label = data.score;
  const train = data.points.map(p => p[key]);
  const mean = data.points.map(p => (p.cv ? p.cv[key] : null));
  const error = data.points.map(p => (p.cv ? p.cv[key + '_se'] : null));
  const seen = [...train, ...mean.map((m, i) => (m === null ? null : m - error[i])), ...mean.map((m, i) => (m === null ? null : m + error[i]))].filter(v => v !== null);
  if (!seen.length) return;
  // a fit far below zero would flatten the rest
  const high = Math.max(...seen), low = Math.max(Math.min(...seen), Math.min(-0.25, high - 1.5));
  const shown = values => values.map(v => (v === null || v < low ? null : v));
  const frame = new Frame(box, data.points.map(p => p.k), low - 0.03 * (high - low), high + 0.05 * (high - low), {
    height: 300, top: 26, label, title: `${label} against the number of columns; all values are in the table at the end` });
  const ok = data.points.map((_, i) => i).filter(i => mean[i] !== null && mean[i] >= low);
  if (ok.length) {
    const edge = (i, sign) => `${frame.x(i).toFixed(1)} ${frame.y(Math.max(low, mean[i] + sign * error[i])).toFixed(1)}`;
    frame.svg.append(make('path', { class: 'band', d: 'M' + [...ok.map(i => edge(i, 1)), ...ok.slice().reverse().map(i => edge(i, -1))].join('L') + 'Z' }));
  }
  frame.line(shown(train), { class: 'series', style: stroke('grey', '5 4') });
  shown(train).forEach((v, i) => v !== null && data.points.length <= 30 && frame.mark(i, v, 'square', { class: 'dot', fill: 'var(--grey)' }));
  frame.line(shown(mean), { class: 'series', style: stroke('blue') });
  shown(mean).forEach((v, i) => v !== null && frame.mark(i, v, 'circle', { class: 'dot', fill: 'var(--blue)' }));
  const chosen = data.choices.paired_se;
  if (chosen !== undefined) {
    frame.svg.append(make('circle', { class: 'ring', cx: frame.x(chosen), cy: frame.y(mean[chosen]), r: 8 }));
    const side = frame.x(chosen) > frame.width - 130 ? -1 : 1;
    frame.svg.append(make('text', { class: 'strong halo', x: frame.x(chosen) + 13 * side, y: frame.y(mean[chosen]) + 20,
      'text-anchor': side > 0 ? 'start' : 'end' }, `chosen: ${data.points[chosen].k}`));
  }
  legend(frame, [['unseen rows', sample('blue', '', 'circle')], ['fitted rows', sample('grey', '5 4', 'square')]]);
  const accuracy = p => (data.classes ? `\ncorrect: ${number(p.cv ? p.cv.accuracy : null, 3)} of unseen, ${number(p.accuracy, 3)} of fitted rows` : '');
  frame.finish(now, i => `k = ${data.points[i].k}\nunseen rows: ${number(mean[i], 3)}${error[i] === null ? '' : ' ± ' + number(error[i], 2)}\nfitted rows: ${number(train[i], 3)}${accuracy(data.points[i])}`);
}

function drawCriteria(box, data, now) {
  const shapes = ['circle', 'square', 'diamond', 'triangle'];
  const names = Object.keys(data.criteria);
  const rows = names.map(name => {
    const base = data.criteria[name][data.choices[name]];
    return data.criteria[name].map(v => (v === null ? null : v - base));
  });
  // the steep beginning would flatten the rest
  const top = Math.max(...rows.map(row => [...row].filter(v => v !== null).sort((a, b) => a - b)[Math.floor(0.7 * (row.length - 1))]), 1);
  const frame = new Frame(box, data.points.map(p => p.k), 0, 1.08 * top, { height: 300, right: 46, label: 'above its lowest value',
    title: 'Information criteria against the number of columns; all values are in the table at the end' });
  const last = rows[0].length - 1, taken = {};
  const ends = rows.map(row => frame.y(Math.max(0, Math.min(row[last] ?? 0, 1.08 * top))));
  const places = spread(ends, 15, frame.top + 4, frame.height - frame.bottom);
  rows.forEach((row, n) => {
    const colour = ['red', 'blue', 'green', 'pink'][n];
    frame.line(row, { class: 'series', style: stroke(colour, DASHES[n]) });
    // rules that agree are stacked, not hidden behind each other
    const chosen = data.choices[names[n]], rank = (taken[chosen] = (taken[chosen] ?? -1) + 1);
    frame.mark(chosen, 0, shapes[n], { fill: `var(--${colour})`, transform: `translate(0 ${-11 * rank})` });
    frame.svg.append(make('text', { x: frame.width - frame.right + 6, y: places[n] + 4, style: `fill: var(--${colour})` }, names[n].toUpperCase()));
  });
  frame.finish(now, i => `k = ${data.points[i].k}\n` + names.map((name, n) => `${name.toUpperCase()}: ${number(data.criteria[name][i], 6)} (best + ${number(rows[n][i], 3)})`).join('\n'));
}

// The effect of a column at a size: its coefficient, or the norm over the classes. Of a category the spread of what
// it adds to the prediction, or how far its values are apart.
function effect(data, i, f, unit) {
  const at = data.points[i].support.indexOf(f);
  if (at < 0) return null;
  if (data.points[i].coef[at] === null) {
    if (unit === 'spread') return data.points[i].effect[at];
    const zero = data.references[f] === null ? [] : [0], parts = data.points[i].parts[at].map(c => [].concat(c));
    const range = values => Math.max(...values) - Math.min(...values);
    return Math.hypot(...parts[0].map((_, c) => range([...zero, ...parts.map(part => part[c])])));
  }
  const coef = data.points[i].coef[at];
  const value = Array.isArray(coef) ? Math.hypot(...coef) : coef;
  return unit === 'spread' ? value * data.spread[f] : value;
}

function drawLines(box, data, now, unit) {
  const rows = data.features.map((_, f) => data.points.map((_, i) => effect(data, i, f, unit)));
  const size = row => row.reduce((sum, v) => sum + Math.abs(v ?? 0), 0);
  const order = rows.map((_, f) => f).sort((a, b) => size(rows[b]) - size(rows[a]));
  const all = rows.flat().filter(v => v !== null);
  if (!all.length) return;
  const low = Math.min(0, ...all), high = Math.max(0, ...all), pad = 0.05 * (high - low);
  const wide = (box.clientWidth || 0) > 620, right = wide ? 170 : 96;
  const many = data.classes && data.classes.length > 2;
  const frame = new Frame(box, data.points.map(p => p.k), low - pad, high + pad, { height: wide ? 420 : 360, right,
    label: many ? 'size over the classes' : 'coefficient', title: 'Coefficients against the number of columns; all values are in the table at the end' });
  frame.svg.append(make('line', { class: 'axis', x1: frame.left, x2: frame.width - right, y1: frame.y(0), y2: frame.y(0) }));
  frame.finish(now, i => `k = ${data.points[i].k}`);
  const named = order.slice(0, NAMED);
  const ends = named.map(f => rows[f].reduce((found, v, i) => (v === null ? found : i), 0));
  const places = spread(named.map((f, n) => frame.y(rows[f][ends[n]])), 15, frame.top + 4, frame.height - frame.bottom);
  for (const f of order.slice().reverse()) {
    const n = named.indexOf(f);
    const style = n < 0 ? {} : { style: stroke(COLOURS[n % 8], DASHES[Math.floor(n / 2) % 5]) };
    frame.line(rows[f], { class: n < 0 ? 'thin' : 'series', ...style });
    rows[f].forEach((v, i) => {
      const lone = v !== null && (rows[f][i - 1] ?? null) === null && (rows[f][i + 1] ?? null) === null;
      if (v !== null && (n >= 0 && data.points.length <= 30 || lone)) frame.mark(i, v, 'circle', { class: 'dot', fill: n < 0 ? 'var(--grey)' : `var(--${COLOURS[n % 8]})` });
    });
    const hit = frame.line(rows[f], { class: 'hit' });
    hit.dataset.tip = `${data.features[f]}\n` + (effect(data, now, f, unit) === null ? `not chosen at k = ${data.points[now].k}` : `${number(effect(data, now, f, unit))} at k = ${data.points[now].k}`);
  }
  named.forEach((f, n) => {
    const x = frame.width - right + 6, y = frame.y(rows[f][ends[n]]);
    frame.svg.append(make('line', { class: 'grid', x1: frame.x(ends[n]) + 3, y1: y, x2: x, y2: places[n] }));
    const text = make('text', { x: x + 4, y: places[n] + 4, style: `fill: var(--${COLOURS[n % 8]})` }, cut(data.features[f], wide ? 23 : 12));
    text.dataset.tip = data.features[f];
    frame.svg.append(text);
  });
}

function drawMap(box, data, now, showAll) {
  const first = f => data.points.findIndex(p => p.support.includes(f));
  const times = f => data.points.filter(p => p.support.includes(f)).length;
  const order = data.features.map((_, f) => f).sort((a, b) => times(b) - times(a) || first(a) - first(b));
  const rows = showAll ? order : order.slice(0, LISTED);
  const wide = (box.clientWidth || 0) > 620, step = 19, left = wide ? 190 : 112;
  const frame = new Frame(box, data.points.map(p => p.k), null, null, { height: 12 + rows.length * step + 44, left, label: '',
    title: 'Which column is chosen at which size; the table at the end says the same' });
  const n = data.points.length, width = Math.min(26, (frame.width - frame.left - frame.right - 16) / Math.max(n - 1, 1) - 1.5);
  frame.svg.append(make('rect', { class: 'focus', x: frame.x(now) - width / 2 - 2, y: 4, width: width + 4, height: rows.length * step + 10 }));
  rows.forEach((f, r) => {
    const y = 12 + r * step;
    const text = make('text', { class: 'label', x: left - 8, y: y + 13, 'text-anchor': 'end' }, cut(data.features[f], wide ? 26 : 14));
    text.dataset.tip = data.features[f];
    frame.svg.append(make('line', { class: 'grid', x1: left, x2: frame.width - frame.right, y1: y + step / 2, y2: y + step / 2 }), text);
    data.points.forEach((point, i) => {
      const at = point.support.indexOf(f);
      if (at < 0) return;
      const again = point.again ? point.again[at] : null;
      const weak = again !== null && again <= 0.5;
      const cell = make('rect', { class: weak ? 'cell weak' : 'cell', x: frame.x(i) - width / 2, y: weak ? y + 6 : y + 2, width: Math.max(width, 1.5),
        height: weak ? step - 12 : step - 4, rx: 1.5, 'data-i': i });
      cell.dataset.tip = `${data.features[f]}\nk = ${point.k}` + (again === null ? '' : `\nchosen again in ${Math.round(again * data.half_samples)} of ${data.half_samples} half-samples`);
      frame.svg.append(cell);
    });
  });
  return order.length;
}
