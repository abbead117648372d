// Texts of the page. The English text is the key; a language is a table from it to another text.

import { CHINESE } from "./chinese.js";

export const LANGUAGES = { en: "English", zh: "中文" };

const tables = { en: {}, zh: CHINESE };
let language = "en";

/** Use a language from now on. */
export function setLanguage(code) {
  language = code in tables ? code : "en";
  document.documentElement.lang = language;
}

export const currentLanguage = () => language;

/** Return a text in the current language; {name} in it stands for a value. */
export function t(text, values = {}) {
  const found = tables[language][text] || text;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}
