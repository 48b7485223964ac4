// Search on pages opened from disk: browsers refuse web workers there, so a hidden frame does a worker's work.
if (location.protocol === "file:") {
  const importScripts = (...urls) =>
    urls.reduce(
      (before, url) =>
        before.then(
          () =>
            new Promise((resolve) => {
              const script = document.createElement("script");
              script.src = url;
              script.onload = resolve;
              document.body.appendChild(script);
            }),
        ),
      Promise.resolve(),
    );
  const Own = window.Worker;
  window.Worker = class extends EventTarget {
    constructor(url, options) {
      if (String(url).startsWith("blob:")) return new Own(url, options); // not of the disk: allowed
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.inside = this.frame.contentWindow;
      this.listener = (event) => {
        if (event.source !== this.inside) return;
        event.stopImmediatePropagation();
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      window.addEventListener("message", this.listener);
      const close = "</" + "script>";
      this.inside.document.open();
      this.inside.document.write(
        `<html><body><script>postMessage = (data) => parent.postMessage(data, "*"); importScripts = ${importScripts}${close}` +
          `<script src="${new URL(url, document.baseURI)}">${close}</body></html>`,
      );
      this.inside.document.close();
      this.ready = new Promise((resolve) => (this.inside.onload = resolve));
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      window.removeEventListener("message", this.listener);
      this.frame.remove();
    }
  };
}
