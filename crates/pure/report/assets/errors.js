// Counts everything that goes wrong in the page, so that a test and a reader can see it.
"use strict";
(() => {
  const root = document.documentElement;
  root.dataset.errors = "0";
  const count = () => {
    root.dataset.errors = String(Number(root.dataset.errors) + 1);
    const trouble = document.getElementById("trouble");
    if (trouble) trouble.hidden = false;
  };
  window.addEventListener("error", count);
  window.addEventListener("unhandledrejection", count);
  document.addEventListener("securitypolicyviolation", count);
  const written = console.error;
  console.error = (...values) => {
    count();
    written.apply(console, values);
  };
})();
