(function () {
  "use strict";
  var q = document.getElementById("q"), count = document.getElementById("count");
  var rows = Array.prototype.slice.call(document.querySelectorAll("#cards tbody tr"));
  var all = rows.map(function (r) { return r.getAttribute("data-words"); });
  function find() {
    var words = q.value.toLowerCase().split(/\s+/).filter(Boolean), n = 0;
    rows.forEach(function (r, i) {
      var hit = words.every(function (w) { return all[i].indexOf(w) >= 0; });
      r.hidden = !hit;
      if (hit) n += 1;
    });
    count.textContent = n + (n === 1 ? " card" : " cards");
    history.replaceState(null, "", words.length ? "#" + encodeURIComponent(q.value) : "#");
  }
  document.getElementById("search").hidden = false;
  q.addEventListener("input", find);
  if (location.hash.length > 1) { try { q.value = decodeURIComponent(location.hash.slice(1)); } catch (e) { q.value = ""; } if (q.value) find(); }
})();
