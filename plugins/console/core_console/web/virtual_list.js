// VirtualList: a list of a thousand rows, of which only those in sight have elements.
//
// The page scrolls, not the list. Elements are used again for other rows: scrolling makes no new ones.

const BEYOND = 6; // rows above and below the window

export class VirtualList {
  /**
   * element   the container, whose height becomes that of all rows
   * height    returns the height of a row in pixels
   * make      returns a row object with `element` and `show(item, index)`
   */
  constructor(element, height, make) {
    this.element = element;
    this.height = height;
    this.make = make;
    this.items = [];
    this.free = [];
    this.shown = new Map(); // index → row
    this.planned = false;
    this.onScroll = () => this.plan();
    addEventListener("scroll", this.onScroll, { passive: true });
    this.onResize = () => this.set(this.items);
    addEventListener("resize", this.onResize);
  }

  close() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onResize);
  }

  /** Show these items. Rows in sight show their item again. */
  set(items) {
    this.items = items;
    const whole = `${items.length * this.height()}px`;
    if (this.element.style.height !== whole) this.element.style.height = whole;
    this.place(true);
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => { this.planned = false; this.place(false); });
  }

  place(again) {
    const row = this.height();
    const above = -this.element.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(above / row) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((above + innerHeight) / row) + BEYOND);
    for (const [index, each] of this.shown) {
      if (index < first || index >= last) {
        // A row with the focus keeps it until another one needs the element.
        if (each.element.contains(document.activeElement) && index < this.items.length) continue;
        this.shown.delete(index);
        this.free.push(each);
        each.element.hidden = true;
      }
    }
    for (let index = first; index < last; index += 1) {
      let each = this.shown.get(index);
      const is_new = !each;
      if (is_new) {
        each = this.free.pop() || this.made();
        each.element.hidden = false;
        this.shown.set(index, each);
      }
      if (is_new || again || each.top !== index * row) {
        if (each.top !== index * row) {
          each.top = index * row;
          each.element.style.transform = `translateY(${each.top}px)`;
        }
        each.show(this.items[index], index);
      }
    }
  }

  made() {
    const each = this.make();
    each.top = -1;
    this.element.append(each.element);
    return each;
  }

  /** Return the element of a row, after scrolling it into sight. */
  reveal(index) {
    const row = this.height();
    const top = this.element.getBoundingClientRect().top + index * row;
    if (top < 130) scrollBy(0, top - 130);
    else if (top + row > innerHeight - 16) scrollBy(0, top + row - innerHeight + 16);
    this.place(false);
    return this.shown.get(index)?.element;
  }
}
