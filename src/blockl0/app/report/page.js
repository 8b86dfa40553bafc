// The state is one number, the place in the path; everything on the page follows it.

const data = JSON.parse(document.getElementById('data').textContent);
const get = id => document.getElementById(id);
const points = data.points;
let now = data.start, unit = 'spread', showAll = false;

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A sentence: texts, and names from the data as lists of one text.
function fill(target, parts) {
  target.replaceChildren(...parts.map(part => (Array.isArray(part) ? element('b', { class: 'name' }, part[0]) : part)));
}

function bar(value, largest, signed) {
  const share = largest > 0 ? Math.min(1, Math.abs(value) / largest) : 0;
  const half = signed ? 50 : 0, width = share * (signed ? 50 : 100);
  const svg = make('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  svg.append(make('rect', { x: value < 0 ? half - width : half, y: 1, width, height: 8, class: value < 0 ? 'minus' : 'plus' }));
  if (signed) svg.append(make('line', { x1: 50, x2: 50, y1: 0, y2: 10, 'vector-effect': 'non-scaling-stroke' }));
  return svg;
}

const barCell = (text, value, largest, signed) =>
  element('td', { class: 'bar' }, element('div', {}, bar(value, largest, signed), element('span', {}, text)));

function fillRows(point) {
  const effects = point.support.map((f, at) => (point.coef[at] === null ? [point.effect[at]] : [].concat(point.coef[at]).map(c => c * data.spread[f])));
  const many = data.classes && data.classes.length > 2 ? data.classes.length : 0;
  const largest = Math.max(0, ...effects.flat().map(Math.abs)), worth = Math.max(0, ...point.drop.map(d => d ?? 0));
  get('rows').replaceChildren(...point.support.flatMap((f, at) => {
    const row = element('tr', {}, element('th', { scope: 'row', class: 'name' }, titleOf(f)));
    const coefs = [].concat(point.coef[at]);
    if (point.coef[at] === null) {
      row.append(...(many ? Array.from({ length: many }, () => element('td')) : [element('td'), barCell(number(effects[at][0], 3), effects[at][0], largest, true)]));
    } else if (coefs.length === 1) {
      row.append(element('td', {}, number(coefs[0])), barCell(number(effects[at][0], 3), effects[at][0], largest, true));
    } else {
      row.append(...coefs.map(c => element('td', {}, number(c))));
    }
    const drop = point.drop[at], again = point.again ? point.again[at] : null;
    row.append(drop === null ? element('td', {}, 'kept') : barCell(share(drop), drop, worth, false));
    if (again !== null) {
      const n = data.half_samples, times = Math.round(again * n);
      const dots = element('span', { class: 'dots', 'aria-hidden': 'true' }, '●'.repeat(times) + '○'.repeat(n - times));
      row.append(element('td', {}, ...(n <= 10 ? [dots] : []), `${times} of ${n}`));
    }
    const entry = points.find(p => p.support.includes(f));
    row.append(element('td', {}, String(entry.k)));
    return [row, ...partRows(point, f, at, row.children.length - 1)];
  }));
}

// A column by its name; a category with its number of coefficients.
function titleOf(f) {
  return data.parts[f] ? `${data.features[f]} (${data.parts[f].length} coefficients)` : data.features[f];
}

// The values of a category, [name, coefficients]; the one that others are compared with first.
function partsOf(point, f, at) {
  const parts = data.parts[f].map((name, i) => [name, [].concat(point.parts[at][i])]);
  const reference = data.references[f];
  return reference === null ? parts : [[`${reference} (reference)`, parts[0][1].map(() => 0)], ...parts];
}

function partRows(point, f, at, cells) {
  if (point.coef[at] !== null) return [];
  return partsOf(point, f, at).map(([name, coefs]) => element('tr', { class: 'part' }, element('th', { scope: 'row', class: 'name' }, name),
    ...Array.from({ length: cells }, (_, i) => element('td', {}, i < coefs.length ? number(coefs[i]) : ''))));
}

function sizeText(point) {
  return `${point.k} of ${data.columns}`;
}

function interceptText(point) {
  const values = [].concat(point.intercept);
  const used = point.support.length < point.k ? ` Only ${point.support.length} of the ${point.k} allowed columns are used.` : '';
  return `Intercept: ${values.map(v => number(v)).join(', ')}. Objective: ${number(point.objective, 6)}; mean loss: ${number(point.loss, 5)}.${used}`;
}

function draw() {
  drawCurve(get('curve'), data, now);
  drawCriteria(get('criteria'), data, now);
  drawLines(get('lines'), data, now, unit);
  const listed = drawMap(get('map'), data, now, showAll);
  get('all-rows').hidden = showAll || listed <= LISTED;
  get('all-rows').textContent = `Show all ${listed} columns`;
}

function show(i) {
  now = Math.max(0, Math.min(points.length - 1, i));
  const point = points[now], { words, certificate } = point;
  fill(get('headline'), words.headline);
  get('slider').value = now;
  get('slider').setAttribute('aria-valuetext', `${point.k} columns; ${words.fit.value} ${words.fit.text}`);
  get('size').textContent = sizeText(point);
  for (const name of ['fit', 'steady']) {
    get(`${name}-value`).textContent = words[name].value;
    get(`${name}-text`).textContent = words[name].text;
  }
  get('proof-question').textContent = certificate.question;
  get('proof-value').textContent = certificate.answer;
  get('verdict').textContent = certificate.verdict;
  get('proof-text').textContent = certificate.short;
  get('proven').textContent = certificate.proven;
  get('open').textContent = certificate.open;
  get('mark').className = `mark ${certificate.mark}`;
  get('intercept').textContent = interceptText(point);
  for (const name of ['python', 'command']) get(name).textContent = data.recipes[name].join(String(point.k));
  fill(get('meaning'), words.meaning);
  get('cautions').replaceChildren(...point.cautions.map(parts => {
    const item = element('li');
    fill(item, parts);
    return item;
  }));
  fillRows(point);
  document.querySelectorAll('[data-rule]').forEach(button => button.setAttribute('aria-pressed', data.choices[button.dataset.rule] === now));
  document.querySelectorAll('#strip .at').forEach((mark, at) => mark.classList.toggle('now', at === now));
  document.querySelectorAll('#overview tbody tr').forEach((row, at) => row.classList.toggle('now', at === now));
  draw();
}

function go(i) {
  show(i);
  get('copied').textContent = '';
  try {
    history.replaceState(null, '', `#k=${points[now].k}`);
  } catch {
    // a page without an address of its own, as in a preview, has no link to update
  }
}

function readLink() {
  const found = /^#k=(\d+)$/.exec(location.hash);
  const at = found ? points.findIndex(p => p.k === Number(found[1])) : -1;
  if (at >= 0) show(at);
  return at >= 0;
}

async function copy(name) {
  const code = get(name), text = code.textContent;
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    done = copyBySelection(text);
  }
  if (!done) getSelection().selectAllChildren(code);
  get('copied').textContent = done ? `Copied for k = ${points[now].k}.` : 'The text is selected: press Ctrl+C to copy it.';
}

// Where the page has no access to the clipboard, as from a file in some browsers.
function copyBySelection(text) {
  const area = element('textarea', { readonly: '', style: 'position: fixed; top: 0; opacity: 0' });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

function fillStrip() {
  get('strip').replaceChildren(...points.map((point, i) => element('span', { class: 'at', 'data-i': i, title: `k = ${point.k}: ${point.certificate.verdict}` },
    element('span', { class: `mark ${point.certificate.mark}` }), String(point.k))));
}

// Written when it is unfolded: hundreds of columns by dozens of sizes are many cells.
function fillCoefficients() {
  const heads = ['Column', ...points.map(p => p.k)].map(text => element('th', { scope: 'col' }, String(text)));
  const line = (name, part, cell) => element('tr', part ? { class: 'part' } : {}, element('th', { scope: 'row', class: 'name' }, name), ...points.map(p => element('td', {}, cell(p))));
  const all = coefs => [].concat(coefs).map(c => number(c)).join(' / ');
  const rows = data.features.flatMap((name, f) => {
    const at = p => p.support.indexOf(f);
    if (!data.parts[f]) return [line(name, false, p => (at(p) < 0 ? '' : all(p.coef[at(p)])))];
    const head = data.references[f] === null ? name : `${name} (reference ${data.references[f]})`;
    return [line(head, false, () => ''), ...data.parts[f].map((part, i) => line(part, true, p => (at(p) < 0 ? '' : all(p.parts[at(p)][i]))))];
  });
  get('coefficient-table').replaceChildren(element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...rows));
}

// One tooltip, for everything in a picture that has something to say.
function tip(event) {
  const box = get('tip'), found = event.target.closest('[data-tip]');
  box.hidden = !found;
  if (!found) return;
  box.textContent = found.dataset.tip;
  const wide = box.offsetWidth, high = box.offsetHeight;
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - wide - 8))}px`;
  box.style.top = `${event.clientY + high + 24 > innerHeight ? event.clientY - high - 10 : event.clientY + 16}px`;
}

function listen() {
  get('slider').addEventListener('input', () => go(Number(get('slider').value)));
  get('fewer').addEventListener('click', () => go(now - 1));
  get('more').addEventListener('click', () => go(now + 1));
  document.querySelectorAll('[data-rule]').forEach(button => button.addEventListener('click', () => go(data.choices[button.dataset.rule])));
  document.addEventListener('click', event => {
    const at = event.target.closest('.plot [data-i], #strip [data-i]');
    if (at) go(Number(at.dataset.i));
  });
  document.addEventListener('keydown', event => {
    const takes = event.target.closest('input, textarea, select, [contenteditable], .scroll, pre');
    if (takes || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) { event.preventDefault(); go(now + step); }
  });
  document.querySelectorAll('[name=unit]').forEach(radio => radio.addEventListener('change', () => { unit = radio.value; draw(); }));
  get('all-rows').addEventListener('click', () => { showAll = true; draw(); });
  get('copy-python').addEventListener('click', () => copy('python'));
  get('copy-command').addEventListener('click', () => copy('command'));
  get('coefficients').addEventListener('toggle', fillCoefficients, { once: true });
  document.addEventListener('pointermove', tip);
  addEventListener('hashchange', readLink);
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(get('curve').clientWidth - width) > 2) { width = get('curve').clientWidth; draw(); }
  }).observe(get('curve'));
}

document.documentElement.classList.add('scripted');
fillStrip();
if (!readLink()) show(now);
listen();
