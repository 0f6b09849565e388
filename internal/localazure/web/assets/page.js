'use strict';
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const wide = matchMedia('(min-width: 1000px)');
  const link = $('#link');
  let busy = false, dirty = false, timer = 0, selected = '', panelLink = '';

  // say shows whether the page is live.
  const say = (state, text) => {
    if (link.dataset.state === state) return;
    link.dataset.state = state;
    $('#link-text').textContent = text;
  };

  // morph makes a node like another one, and keeps what the viewer has opened, focused or typed.
  const morph = (old, fresh) => {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) { old.replaceWith(fresh); return; }
    if (old.nodeType !== Node.ELEMENT_NODE) { old.data = fresh.data; return; }
    if (old.hasAttribute('data-keep')) { renew(old, fresh); return; }
    for (const { name, value } of [...fresh.attributes]) {
      if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      if (name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    const known = new Map();
    for (const child of old.children) if (child.dataset.key) known.set(child.dataset.key, child);
    let at = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const same = child.dataset && child.dataset.key ? known.get(child.dataset.key) : at && !(at.dataset && at.dataset.key) ? at : null;
      if (!same) { old.insertBefore(child, at); continue; }
      if (same !== at) old.insertBefore(same, at);
      const next = same.nextSibling;
      morph(same, child);
      at = next;
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  };

  // renew takes new choices into the fields of a form.
  const renew = (old, fresh) => {
    for (const select of $$('select[name]', old)) {
      const other = $(`select[name="${select.name}"]`, fresh);
      if (!other || select === document.activeElement || select.options.length === other.options.length) continue;
      const value = select.value;
      select.replaceChildren(...other.childNodes);
      select.value = value;
    }
  };

  // part reads the content of a page.
  const part = async (address) => {
    const url = new URL(address, location.href);
    url.searchParams.set('part', '1');
    const answer = await fetch(url, { credentials: 'same-origin' });
    const text = await answer.text();
    if (!answer.ok && answer.status !== 404) throw new Error(answer.statusText);
    return new DOMParser().parseFromString(text, 'text/html').querySelector('main');
  };

  // refresh shows the present state. It asks again only when the last answer is there, and not more often than the page can bear.
  const refresh = async () => {
    if ($('#live').dataset.view === 'why') return; // an explanation reads the cluster, so the viewer asks for it
    if (busy || document.hidden) { dirty = true; return; }
    busy = true; dirty = false;
    clearTimeout(timer);
    const began = performance.now();
    let again = 0;
    try {
      const fresh = await part(location.href);
      const live = $('#live');
      if (fresh.dataset.view === live.dataset.view) {
        clear();
        morph(live, fresh);
        highlight(selected);
      }
      again = Number(live.dataset.again);
      if (panelLink) await fill(panelLink);
    } catch { again = 3000; }
    const pause = Math.max(200, 3 * (performance.now() - began));
    timer = setTimeout(() => { busy = false; if (dirty) refresh(); else if (again) timer = setTimeout(refresh, again); }, pause);
  };

  // The related cards of one, and lines to them.
  const cards = (anchor) => $$(`[data-r="${anchor}"]`);
  const clear = () => {
    $$('.selected, .near').forEach((e) => e.classList.remove('selected', 'near'));
    $('#lines')?.remove();
  };
  const highlight = (anchor) => {
    clear();
    if (!anchor) return;
    const own = cards(anchor);
    const to = new Set((own[0]?.dataset.to || '').split(' ').filter(Boolean));
    for (const e of $$('[data-to]')) if (e.dataset.to.split(' ').includes(anchor)) to.add(e.dataset.r);
    own.forEach((e) => e.classList.add('selected'));
    const near = [...to].flatMap(cards);
    near.forEach((e) => e.classList.add('near'));
    draw(own, near);
  };
  const draw = (own, near) => {
    const map = $('#map');
    const from = own.find((e) => e.getClientRects().length);
    if (!map || !from || near.length > 200) return;
    const space = 'http://www.w3.org/2000/svg';
    const lines = document.createElementNS(space, 'svg');
    lines.id = 'lines';
    lines.setAttribute('class', 'lines');
    lines.setAttribute('aria-hidden', 'true');
    const base = map.getBoundingClientRect();
    const box = (e) => { const r = e.getBoundingClientRect(); return { x: r.left - base.left, y: r.top - base.top, w: r.width, h: r.height }; };
    const a = box(from);
    for (const e of near) {
      if (!e.getClientRects().length || e.contains(from) || from.contains(e)) continue;
      const b = box(e);
      const path = document.createElementNS(space, 'path');
      const end = document.createElementNS(space, 'circle');
      let x, y, u, v;
      if (b.y >= a.y + a.h || a.y >= b.y + b.h) { // one is below the other
        const down = b.y >= a.y + a.h;
        [x, y, u, v] = [a.x + Math.min(a.w / 2, 110), down ? a.y + a.h : a.y, b.x + Math.min(b.w / 2, 110), down ? b.y : b.y + b.h];
        const bend = (v - y) / 2;
        path.setAttribute('d', `M${x} ${y} C${x} ${y + bend} ${u} ${v - bend} ${u} ${v}`);
      } else {
        const right = b.x >= a.x;
        [x, y, u, v] = [right ? a.x + a.w : a.x, a.y + Math.min(a.h / 2, 14), right ? b.x : b.x + b.w, b.y + Math.min(b.h / 2, 14)];
        const bend = (u - x) / 2;
        path.setAttribute('d', `M${x} ${y} C${x + bend} ${y} ${u - bend} ${v} ${u} ${v}`);
      }
      end.setAttribute('cx', u); end.setAttribute('cy', v); end.setAttribute('r', 3);
      lines.append(path, end);
    }
    map.append(lines);
  };
  const cardOf = (e) => e.closest?.('[data-r]')?.dataset.r || '';
  for (const kind of ['mouseover', 'focusin']) {
    document.addEventListener(kind, (e) => { if ($('#map')?.contains(e.target)) highlight(cardOf(e.target) || selected); });
  }
  document.addEventListener('mouseout', (e) => { if ($('#map') && !$('#map').contains(e.relatedTarget)) highlight(selected); });

  // The panel shows a resource beside the map.
  const panel = $('#panel');
  const fill = async (address) => {
    const fresh = await part(address);
    if (address !== panelLink) return;
    const content = $('#panel-content');
    for (const e of $$('[id]', fresh)) { e.id = 'panel-' + e.id; }
    for (const e of $$('[aria-labelledby]', fresh)) e.setAttribute('aria-labelledby', 'panel-' + e.getAttribute('aria-labelledby'));
    for (const h of $$('h1', fresh)) h.setAttribute('tabindex', '-1');
    const holder = document.createElement('div');
    holder.id = 'panel-content';
    holder.append(...fresh.childNodes);
    morph(content, holder);
  };
  const open = async (address) => {
    panelLink = address;
    try { await fill(address); } catch { location.href = address; return; }
    panel.hidden = false;
    panel.scrollTop = 0;
    $('h1', panel)?.focus({ preventScroll: true });
  };
  const close = () => {
    if (panel.hidden) return;
    panel.hidden = true; panelLink = '';
    const back = cards(selected)[0];
    selected = ''; highlight('');
    $('a', back || document.body)?.focus({ preventScroll: true });
  };
  $('#close').addEventListener('click', close);
  document.addEventListener('keydown', (e) => { if (e.key === 'Escape') close(); });
  document.addEventListener('click', (e) => {
    const a = e.target.closest('a');
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button || !wide.matches || !$('#map')) return;
    if (!a.pathname.endsWith('/resource')) return;
    e.preventDefault();
    selected = cardOf(a) || selected;
    highlight(selected);
    open(a.href);
  });

  // Filters apply as they are typed.
  let typing = 0;
  $$('form.filter:not(.why)').forEach((form) => {
    const apply = () => {
      const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
      history.replaceState(null, '', location.pathname + (query.size ? '?' + query : ''));
      refresh();
    };
    form.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(apply, 150); });
    form.addEventListener('submit', (e) => { e.preventDefault(); apply(); });
  });

  document.addEventListener('visibilitychange', () => { if (!document.hidden && dirty) refresh(); });
  const events = new EventSource('/kaz/web/events');
  events.onopen = () => { if (link.dataset.state === 'lost') refresh(); say('live', 'live'); };
  events.onerror = () => say('lost', 'connection lost');
  events.addEventListener('changed', refresh);
  const first = Number($('#live').dataset.again);
  if (first) timer = setTimeout(refresh, first);
})();
