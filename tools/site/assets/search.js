'use strict';
(() => {
  const input = document.getElementById('search'), list = document.getElementById('results');
  const index = new URL('../search.json', document.currentScript.src), base = new URL('.', index);
  let pages = null, chosen = -1;

  // load reads the index once, when a search begins.
  const load = async () => {
    if (pages) return;
    pages = [];
    const answer = await fetch(index);
    if (!answer.ok) { pages = null; return; }
    pages = (await answer.json()).map((p) => ({ ...p, low: p.text.toLowerCase(), lowTitle: p.title.toLowerCase(),
      headings: p.headings.map((h) => ({ ...h, low: h.text.toLowerCase() })) }));
    show();
  };

  // count is how often a word is in a text, at most ten times.
  const count = (text, word) => {
    let n = 0;
    for (let at = text.indexOf(word); at >= 0 && n < 10; at = text.indexOf(word, at + word.length)) n++;
    return n;
  };

  // find returns the best pages that have all words, each with its best heading.
  const find = (words) => {
    const found = [];
    for (const p of pages) {
      let score = 0, all = true;
      for (const w of words) {
        const title = count(p.lowTitle, w), text = count(p.low, w);
        all &&= title + text > 0;
        score += 30 * title + text + 8 * p.headings.filter((h) => h.low.includes(w)).length;
      }
      if (!all) continue;
      const heading = p.headings.map((h) => ({ h, n: words.filter((w) => h.low.includes(w)).length })).sort((a, b) => b.n - a.n)[0];
      found.push({ p, score, heading: heading && heading.n ? heading.h : null });
    }
    return found.sort((a, b) => b.score - a.score).slice(0, 12);
  };

  // excerpt is the text around a word.
  const excerpt = (p, word) => {
    const at = p.low.indexOf(word);
    if (at < 0) return '';
    const from = Math.max(0, p.text.lastIndexOf(' ', at - 40) + 1);
    return (from ? '… ' : '') + p.text.slice(from, at + 110) + ' …';
  };

  const element = (name, text, cls) => {
    const e = document.createElement(name);
    e.textContent = text;
    if (cls) e.className = cls;
    return e;
  };

  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((w) => w.length > 1);
    chosen = -1;
    input.removeAttribute('aria-activedescendant');
    const open = pages !== null && words.length > 0;
    list.hidden = !open;
    input.setAttribute('aria-expanded', open);
    if (!open) return;
    const found = find(words);
    list.replaceChildren(...found.map(({ p, heading }, i) => {
      const item = element('li', '');
      item.id = 'result-' + i;
      item.setAttribute('role', 'option');
      const link = element('a', p.title);
      link.href = new URL(p.url.slice(1), base).href + (heading ? '#' + heading.id : '');
      link.tabIndex = -1;
      if (heading) link.append(element('span', ' › ' + heading.text, 'heading'));
      link.append(element('span', excerpt(p, words[0]), 'excerpt'));
      item.append(link);
      return item;
    }));
    if (!found.length) list.append(element('li', 'No page has all of these words.', 'none'));
  };

  const choose = (step) => {
    const items = [...list.querySelectorAll('[role=option]')];
    if (!items.length) return;
    items[chosen]?.removeAttribute('aria-selected');
    chosen = (chosen + step + items.length) % items.length;
    items[chosen].setAttribute('aria-selected', 'true');
    items[chosen].scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', items[chosen].id);
  };

  const close = () => { list.hidden = true; input.setAttribute('aria-expanded', false); };

  input.addEventListener('focus', () => { load(); if (input.value) show(); });
  input.addEventListener('input', show);
  input.form.addEventListener('submit', (event) => event.preventDefault());
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') choose(1);
    else if (event.key === 'ArrowUp') choose(chosen < 0 ? 0 : -1);
    else if (event.key === 'Enter') list.querySelectorAll('[role=option] a')[Math.max(0, chosen)]?.click();
    else if (event.key === 'Escape') { close(); input.blur(); }
    else return;
    event.preventDefault();
  });
  // The key / leads to the search when it is released, so that it is not typed there.
  const leads = (event) => event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.matches('input, textarea, select');
  document.addEventListener('keydown', (event) => { if (leads(event)) event.preventDefault(); });
  document.addEventListener('keyup', (event) => { if (leads(event)) input.focus(); });
  document.addEventListener('click', (event) => { if (!event.target.closest('.search')) close(); });
  const narrow = matchMedia('(max-width: 899px)'), fold = () => { document.getElementById('pages').open = !narrow.matches; };
  narrow.addEventListener('change', fold);
  fold();
})();
