// realmgate console: live content, keys, filter, theme. Without it every page is whole; reloading shows what is new.
'use strict';
const $ = (query, of = document) => of.querySelector(query);
const $$ = (query, of = document) => [...of.querySelectorAll(query)];
const root = document.documentElement;
const body = () => document.body;

// -- theme: the system's, or what was chosen by `t`
const chosen = () => { try { return localStorage.getItem('theme'); } catch { return null; } };
if (chosen() === 'light' || chosen() === 'dark') root.dataset.theme = chosen();
function turn() {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  try { localStorage.setItem('theme', root.dataset.theme); } catch { /* it holds for this page */ }
}

addEventListener('DOMContentLoaded', () => {
  const main = $('#main'), live = $('#live');
  if (!live) return; // the login page has nothing of all this
  const say = text => { $('#say').textContent = text; };

  // -- ages go on by themselves, also when nothing comes
  const words = seconds => {
    if (seconds < 120) return `${Math.round(seconds)} s`;
    return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
  };
  let shownAt = Date.now(), paused = false, pending = false, waiting = null;
  const state = text => { if (live.textContent !== text) live.textContent = text; };
  setInterval(() => {
    const passed = (Date.now() - shownAt) / 1000;
    for (const each of $$('[data-age]')) {
      const age = Number(each.dataset.age) + passed;
      each.textContent = words(age);
      each.closest('.age')?.classList.toggle('warn', age > 15);
    }
    if (paused) state(`paused, ${words(passed)} old`);
    else if (live.dataset.live === 'broken') state(`not connected, ${words(passed)} old`);
    else if (live.dataset.live === 'yes') state(`live, ${words(passed)} old`);
    live.classList.toggle('broken', live.dataset.live === 'broken' || (paused && passed > 10));
  }, 1000);

  // -- live: what has a key changes in place. Rows that are new wait behind a button, so that nothing moves by itself
  const isRow = each => each.tagName === 'TR';
  const held = each => each.contains(document.activeElement) && document.activeElement !== document.body;
  function apply(html) {
    const fresh = new DOMParser().parseFromString(`<body>${html}`, 'text/html').body;
    const known = new Map($$('[data-key]', main).map(each => [each.dataset.key, each]));
    const coming = new Map($$('[data-key]', fresh).map(each => [each.dataset.key, each]));
    let added = 0;
    for (const [key, now] of coming) {
      const old = known.get(key);
      if (!old) { added += 1; continue; }
      old.classList.remove('gone');
      if (old.innerHTML !== now.innerHTML) change(old, now);
      else if (!isRow(old) && old.className !== now.className) old.className = now.className;
    }
    for (const [key, old] of known) if (!coming.has(key) && isRow(old)) old.classList.add('gone');
    const structure = fresh.querySelectorAll('table').length !== $$('table', main).length;
    waiting = added || structure ? html : null;
    const button = $('#newer');
    button.hidden = !waiting;
    if (waiting) button.firstElementChild.firstChild.data = added ? `Show ${added} newer ` : 'Show what is new ';
  }
  function change(old, now) { // cell by cell, so that focus and what is open stay
    const pairs = isRow(old) ? [...old.children].map((cell, at) => [cell, now.children[at]]) : [[old, now]];
    for (const [was, is] of pairs) {
      if (!is || was.innerHTML === is.innerHTML || held(was) || $('details[open]', was)) continue;
      was.replaceChildren(...[...is.childNodes].map(each => document.importNode(each, true)));
      was.className = is.className;
    }
  }
  function showNewer() {
    if (!waiting) return;
    const open = $$('details[open]', main).map(each => each.closest('[data-key]')?.dataset.key || each.id);
    main.innerHTML = waiting;
    waiting = null;
    for (const each of $$('details', main)) {
      if (open.includes(each.closest('[data-key]')?.dataset.key || each.id)) each.open = true;
    }
    at = -1;
    ready();
    main.focus({ preventScroll: true });
  }
  const parts = []; // of the page as it is now; the first event of a connection has all, a later one those that changed
  function came(text) {
    const data = JSON.parse(text);
    for (const [at, part] of Object.entries(data.parts)) parts[at] = part;
    parts.length = data.count;
    if (paused) pending = true; else took();
  }
  function took() {
    shownAt = Date.now();
    live.dataset.live = 'yes';
    const verdict = $('.verdict strong', main)?.textContent;
    apply(parts.join(''));
    const now = $('.verdict strong', main)?.textContent;
    if (now !== verdict) say(now);
    sift();
  }
  let source = null;
  function connect() {
    if (source || !body().dataset.stream) return;
    source = new EventSource(body().dataset.stream);
    source.addEventListener('parts', event => came(event.data));
    source.addEventListener('over', () => { source.close(); source = null; location.reload(); });
    source.onerror = () => { live.dataset.live = 'broken'; };
  }
  function leave() { source?.close(); source = null; }
  let hidden = 0;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(leave, 60000); else connect();
  });
  addEventListener('pagehide', leave);
  connect();

  // -- pause: nothing on the page changes, the age goes on
  const pause = $('#pause');
  function toggle() {
    paused = !paused;
    pause.setAttribute('aria-pressed', paused);
    pause.firstChild.data = paused ? 'Resume ' : 'Pause ';
    say(paused ? 'Paused' : 'Live');
    if (!paused && pending) { took(); pending = false; }
  }
  pause.hidden = !body().dataset.stream;
  $('#theme').hidden = $('#help').hidden = false;
  pause.addEventListener('click', toggle);
  $('#theme').addEventListener('click', turn);
  $('#help').addEventListener('click', () => $('#keys').showModal());
  main.addEventListener('click', event => { if (event.target.closest('#newer')) showNewer(); });

  // -- rows: a click leads where the row's link leads; j and k walk
  const rows = () => $$('tbody tr', main).filter(row => row.offsetParent && $('a[href]', row) && !row.matches('.more'));
  let at = -1;
  const go = row => { location.href = row.dataset.go || $('a[href]', row).href; };
  document.addEventListener('click', event => {
    const row = event.target.closest('tr[data-go]');
    if (row && !event.target.closest('a,button,input,summary,label') && !String(getSelection())) go(row);
  });
  function move(by) {
    const all = rows();
    if (!all.length) return;
    for (const row of $$('tr.at', main)) row.classList.remove('at');
    at = Math.max(0, Math.min(all.length - 1, at + by));
    all[at].classList.add('at');
    all[at].scrollIntoView({ block: 'nearest' });
    $('a[href]', all[at]).focus({ preventScroll: true });
  }

  // -- filter: sifts the rows that are here; Enter asks the server for all
  const sift = () => {
    const box = $('input[data-filter]', main), count = $('#shown', main);
    if (!box) return;
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of $$('tbody[data-rows] > tr:not(.more)', main)) {
      const more = row.nextElementSibling?.matches('.more') ? row.nextElementSibling : null;
      const text = (row.textContent + (more?.textContent || '')).toLowerCase();
      row.hidden = !wanted.every(word => text.includes(word));
      if (more) more.hidden = row.hidden;
      shown += !row.hidden;
    }
    if (count) count.textContent = wanted.length ? `${shown} ${shown === 1 ? 'row' : 'rows'}` : '';
  };
  function ready() {
    $('input[data-filter]', main)?.addEventListener('input', sift);
    sift();
  }
  ready();

  // -- keys; none of them acts on the realm
  const pages = Object.fromEntries($$('[data-g]').map(each => [each.dataset.g, each.href]));
  let g = 0;
  const keys = {
    '/': () => { $('#find').focus(); $('#find').select(); },
    f: () => $('input[data-filter]', main)?.focus(),
    j: () => move(1),
    k: () => move(-1),
    n: showNewer,
    p: () => { if (!pause.hidden) toggle(); },
    t: turn,
    '?': () => $('#keys').showModal(),
    ' ': () => {
      const below = $('tr.at', main).nextElementSibling;
      const details = below?.matches('.more') ? $('details', below) : $('tr.at details', main);
      if (details) details.open = !details.open;
    },
  };
  document.addEventListener('keydown', event => {
    if (event.target.matches('input,textarea,select')) {
      if (event.key !== 'Escape') return;
      event.preventDefault(); // a browser empties a search box: the filter would end with the next answer
      event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || $('dialog[open]')) return;
    if (Date.now() - g < 1500 && pages[event.key]) { location.href = pages[event.key]; return; }
    g = event.key === 'g' ? Date.now() : 0;
    if (event.key === ' ' && (!$('tr.at', main) || event.target.matches('summary,button'))) return;
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
});
